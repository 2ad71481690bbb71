#include "sim/simulation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/cluster.h"
#include "sim/gateway.h"
#include "sim/gateways.h"
#include "sim/key_moves.h"
#include "sim/measure.h"
#include "sim/telemetry.h"
#include "sim/working_sets.h"

namespace hidane::sim {
namespace {

constexpr Duration kSecond = std::chrono::seconds(1);
constexpr uint64_t kScrapeEverySeconds = 5;  // the gateway's health.metrics_interval_ms

/// One run: owns time, and hands each event to the part whose business it is.
class Simulation final : World, FleetControl {
 public:
  Simulation(const Setup& setup, Workload& workload)
      : setup_(setup),
        workload_(workload),
        cluster_(setup.engines, setup.shared_cores, agenda_),
        operations_(setup.plan),
        agreement_(setup.deltas) {}

  Status Prepare();
  Run Go();

 private:
  // World: what gateways do to engines and clients.
  Sent Send(const Request& request, WorkerId worker, TimePoint now) override {
    return cluster_.Submit(request, worker.value(), now);
  }
  void Cancel(uint64_t id, WorkerId worker) override { cluster_.Cancel(id, worker.value()); }
  void WakeAt(TimePoint at, uint64_t id) override {
    agenda_.Push(at, {.kind = Event::Kind::kWake, .id = id});
  }
  uint64_t NewRefreshId(uint32_t replica) override;
  void OnFirstByte(uint64_t id, TimePoint now) override { measure_.OnFirstByte(id, now); }
  void OnEnd(const Ending& ending, TimePoint now) override;

  // FleetControl: what operators do to workers.
  void Drain(WorkerId worker, bool draining, TimePoint now) override;
  void Stop(WorkerId worker, TimePoint now) override;
  void Start(WorkerId worker, TimePoint now) override { cluster_.Start(worker.value(), now); }
  bool Idle(WorkerId worker) const override;
  uint32_t workers() const override { return static_cast<uint32_t>(cluster_.size()); }

  struct Planned {
    Request request;
    bool from_next;  // Workload::Next gave it
  };
  struct Live {
    Request request;
    TimePoint sent{};
    bool in_line = false;  // of admission
  };

  void Handle(const Event& event, TimePoint now);
  void PlanNext(TimePoint now);
  void Plan(Request request, bool from_next);
  void SendPlanned(uint64_t plan, TimePoint now);
  void SendNow(Request request, TimePoint now);
  void Enter(uint64_t id, TimePoint now);
  bool AdmitsAtOnce(Live& live, TimePoint now);
  void GiveUp(uint64_t id, TimePoint now);
  void EnterLetIn(TimePoint now);
  void NoteKey(const Request& request, WorkerId worker);
  void EndStep(uint32_t worker, uint64_t life, TimePoint now);
  void Second(TimePoint now);
  Run Finish(TimePoint now);
  Gateway& GatewayOf(uint64_t id) { return gateways_[id % gateways_.size()]; }
  bool Over() const { return planned_.empty() && live_.empty(); }

  const Setup& setup_;
  Workload& workload_;
  Agenda agenda_;
  Cluster cluster_;
  Operations operations_;
  Agreement agreement_;
  std::vector<Gateway> gateways_;
  std::optional<WorkingSets> working_sets_;
  Measure measure_;
  KeyMoves key_moves_;
  std::map<uint64_t, Planned> planned_;  // by order of planning: sent when their time comes
  std::map<uint64_t, Live> live_;        // by id
  std::vector<StepEvent> step_;          // scratch
  std::vector<Series::Point> samples_;
  uint64_t next_plan_ = 0;
  uint64_t next_id_ = 1;
  uint64_t next_refresh_ = 0;
  uint64_t seconds_ = 0;
  uint64_t events_ = 0;
  bool stopped_ = false;
};

// Above all others, and such that GatewayOf finds who sent it.
uint64_t Simulation::NewRefreshId(uint32_t replica) {
  constexpr uint64_t kFirst = uint64_t{1} << 40;
  const uint64_t n = gateways_.size();
  return (kFirst + next_refresh_++) * n + replica;
}

Status Simulation::Prepare() {
  if (setup_.engines.empty()) return Fail(Code::kInvalidArgument, "0 replicas", "replicas");
  if (setup_.gateways == 0) return Fail(Code::kInvalidArgument, "0 gateways", "gateways");
  HIDANE_TRY(gateways_, MakeGateways(setup_, cluster_, *this));
  if (setup_.working_set)
    working_sets_.emplace(*setup_.working_set, setup_.gateways, cluster_.kv_capacity_tokens(),
                          setup_.session_ids);
  return {};
}

Run Simulation::Go() {
  TimePoint now{};
  Second(now);  // gateways probe before they serve
  PlanNext(now);
  while (!Over() && !stopped_ && agenda_.next_at() <= setup_.until) {
    const auto due = agenda_.Pop();
    now = due.at;
    ++events_;
    Handle(due.event, now);
    agreement_.Collect(gateways_, agenda_, now);
  }
  return Finish(now);
}

void Simulation::Handle(const Event& event, TimePoint now) {
  using Kind = Event::Kind;
  switch (event.kind) {
    case Kind::kSecond:
      return Second(now);
    case Kind::kSend:
      return SendPlanned(event.id, now);
    case Kind::kStepBegin:
      return cluster_.BeginStep(event.who, now);
    case Kind::kStepEnd:
      return EndStep(event.who, event.id, now);
    case Kind::kWake:
      return GatewayOf(event.id).Wake(event.id, now);
    case Kind::kDeltas:
      return agreement_.Deliver(event.id, gateways_, now);
    case Kind::kEnter:
      return Enter(event.id, now);
    case Kind::kPatience:
      return GiveUp(event.id, now);
  }
}

void Simulation::Plan(Request request, bool from_next) {
  agenda_.Push(request.arrival, {.kind = Event::Kind::kSend, .id = next_plan_});
  planned_.emplace(next_plan_++, Planned{std::move(request), from_next});
}

void Simulation::SendPlanned(uint64_t plan, TimePoint now) {
  const auto at = planned_.find(plan);
  Planned planned = std::move(at->second);
  planned_.erase(at);
  SendNow(std::move(planned.request), now);
  if (planned.from_next) PlanNext(now);
}

// All that is sent in one instant is sent at once: engines that begin a step then see all of it.
void Simulation::PlanNext(TimePoint now) {
  for (;;) {
    std::optional<Request> next = workload_.Next();
    if (!next) return;
    if (next->arrival > now) return Plan(*std::move(next), true);
    SendNow(*std::move(next), now);
  }
}

void Simulation::SendNow(Request request, TimePoint now) {
  const uint64_t id = next_id_++;
  request.id = id;
  Live& live = live_.emplace(id, Live{std::move(request), now}).first->second;
  measure_.OnSend(live.request, cluster_, now);
  if (live.request.patience > Duration{}) {
    agenda_.Push(now + live.request.patience, {.kind = Event::Kind::kPatience, .id = id});
  }
  if (AdmitsAtOnce(live, now)) Enter(id, now);
  EnterLetIn(now);
}

bool Simulation::AdmitsAtOnce(Live& live, TimePoint now) {
  if (!working_sets_) return true;
  const admission::Verdict verdict = working_sets_->Arrive(live.request, now);
  TellLeft(*working_sets_, gateways_);
  live.in_line = verdict.kind == admission::Verdict::Kind::kWait;
  if (verdict.kind == admission::Verdict::Kind::kRefuse) {
    OnEnd({.id = live.request.id, .retry_after = verdict.expected_wait}, now);
  }
  return verdict.kind == admission::Verdict::Kind::kGo;
}

// As an event of its own: those let in are told from within a gateway that is busy with another.
void Simulation::EnterLetIn(TimePoint now) {
  if (!working_sets_) return;
  TellLeft(*working_sets_, gateways_);
  for (const uint64_t id : working_sets_->TakeLetIn()) {
    agenda_.Push(now, {.kind = Event::Kind::kEnter, .id = id});
  }
}

void Simulation::Enter(uint64_t id, TimePoint now) {
  const auto at = live_.find(id);
  if (at == live_.end()) return;  // its client left the line
  auto& [request, sent, in_line] = at->second;
  in_line = false;
  measure_.OnEnter(request, now - sent);
  GatewayOf(id).Arrive(request, now);
  agreement_.Collect(gateways_, agenda_, now);
}

void Simulation::GiveUp(uint64_t id, TimePoint now) {
  const auto at = live_.find(id);
  if (at == live_.end()) return;
  if (at->second.in_line) return OnEnd({.id = id}, now);
  GatewayOf(id).GiveUp(id, now);
}

void Simulation::OnEnd(const Ending& ending, TimePoint now) {
  measure_.OnEnd(ending, now);
  if (working_sets_) working_sets_->Leave(ending.id, now);
  EnterLetIn(now);
  const auto at = live_.find(ending.id);
  if (ending.ok) NoteKey(at->second.request, ending.worker);
  auto next = workload_.After(
      {.request = at->second.request, .ok = ending.ok, .retry_after = ending.retry_after}, now);
  live_.erase(at);
  if (next) Plan(*std::move(next), false);
}

void Simulation::NoteKey(const Request& request, WorkerId worker) {
  key_moves_.Serve(request.prompt.k2(), {worker.value(), cluster_.life(worker.value())},
                   [this](KeyMoves::Place p) { return cluster_.life(p.worker) == p.life; });
}

void Simulation::EndStep(uint32_t worker, uint64_t life, TimePoint now) {
  const auto events = cluster_.EndStep(worker, life);
  step_.assign(events.begin(), events.end());
  for (const StepEvent& event : step_) {
    Gateway& gateway = GatewayOf(event.id);
    if (event.kind == StepEvent::Kind::kFirstToken) {
      gateway.FirstToken(event.id, now);
    } else {
      gateway.Finish(event.id, event.cached_tokens, now);
    }
  }
  cluster_.BeginStep(worker, now);
}

void Simulation::Drain(WorkerId worker, bool draining, TimePoint now) {
  for (Gateway& gateway : gateways_) gateway.router().DrainWorker(worker, draining, now);
}

void Simulation::Stop(WorkerId worker, TimePoint now) {
  for (const uint64_t id : cluster_.Stop(worker.value())) GatewayOf(id).Reset(id, now);
}

bool Simulation::Idle(WorkerId worker) const {
  const Engine& engine = cluster_.engine(worker.value());
  return engine.running() + engine.waiting() == 0;
}

void Simulation::Second(TimePoint now) {
  operations_.Second(now, *this);
  for (Gateway& gateway : gateways_) {
    ProbeHealth(cluster_, gateway.router(), now);
    if (seconds_ % kScrapeEverySeconds == 0) ScrapeMetrics(cluster_, gateway.router(), now);
    gateway.Tick(now);
  }
  if (working_sets_) working_sets_->Tick(now);
  EnterLetIn(now);
  if (setup_.series_step > Duration{} && now % setup_.series_step == Duration{}) {
    samples_.push_back(SampleFleet(cluster_, gateways_.front().router(), now));
  }
  if (setup_.on_second && !setup_.on_second(now, measure_.ended())) stopped_ = true;
  ++seconds_;
  agenda_.Push(now + kSecond, {.kind = Event::Kind::kSecond});
}

Run Simulation::Finish(TimePoint now) {
  Run run;
  measure_.FillRow(cluster_, run.row);
  run.row.policy = setup_.policy;
  run.row.gateways = setup_.gateways;
  run.row.deltas = Name(setup_.deltas);
  if (working_sets_) working_sets_->FillRow(now, run.row);
  if (const auto change = setup_.plan.first_change()) {
    run.row.recovery_s = measure_.RecoverySeconds(*change);
  }
  key_moves_.FillRow(run.row);
  FillIndexMemory(gateways_, now, run.row);
  AddDecisions(gateways_, run);
  if (setup_.params.keep_warm) {
    run.row.keep_warm = "on";
    run.row.refresh_share = static_cast<double>(run.refreshes) / static_cast<double>(run.sent);
  }
  if (setup_.series_step > Duration{}) {
    run.series = measure_.MakeSeries(setup_.series_step, std::move(samples_));
    run.ttft_s = measure_.SortedTtfts();
  }
  run.plan = setup_.plan;
  run.events = events_;
  run.steps = cluster_.steps();
  run.ended = now;
  return run;
}

}  // namespace

Result<Run> Simulate(const Setup& setup, Workload& workload) {
  Simulation simulation(setup, workload);
  HIDANE_CHECK_OK(simulation.Prepare());
  return simulation.Go();
}

}  // namespace hidane::sim
