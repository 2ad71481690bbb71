#include "routing/single_flight.h"

#include <algorithm>

#include "base/rng.h"

namespace hidane::routing {

uint64_t SingleFlight::Key(uint64_t k1, WorkerId worker) {
  return Mix64(k1 ^ Mix64(worker.value()));
}

Flight SingleFlight::Peek(uint64_t k1, WorkerId worker, uint32_t cold_tokens) const {
  if (flights_.contains(Key(k1, worker))) return Flight::kFollow;
  return cold_tokens < cold_tokens_min_ ? Flight::kGo : Flight::kLead;
}

void SingleFlight::Join(Ticket ticket, uint64_t k1, WorkerId worker, Flight flight) {
  if (flight == Flight::kGo) return;
  const uint64_t key = Key(k1, worker);
  Waiting& waiting = flights_[key];
  if (flight == Flight::kLead) {
    waiting.leader = ticket;
  } else {
    waiting.followers.push_back(ticket);
  }
  flight_of_[ticket.value()] = key;
}

bool SingleFlight::Leads(Ticket ticket) const {
  const auto at = flight_of_.find(ticket.value());
  return at != flight_of_.end() && flights_.at(at->second).leader == ticket;
}

std::vector<Ticket> SingleFlight::Landed(Ticket leader) {
  if (!Leads(leader)) return {};
  const auto flight = flights_.find(flight_of_.at(leader.value()));
  std::vector<Ticket> released = std::move(flight->second.followers);
  flights_.erase(flight);
  flight_of_.erase(leader.value());
  for (const Ticket t : released) flight_of_.erase(t.value());
  return released;
}

std::vector<Ticket> SingleFlight::Failed(Ticket leader) {
  if (!Leads(leader)) return {};
  const auto flight = flights_.find(flight_of_.at(leader.value()));
  auto& [lead, followers] = flight->second;
  flight_of_.erase(leader.value());
  if (followers.empty()) {
    flights_.erase(flight);
    return {};
  }
  lead = followers.front();
  followers.erase(followers.begin());
  return {lead};
}

void SingleFlight::Leave(Ticket follower) {
  const auto at = flight_of_.find(follower.value());
  if (at == flight_of_.end() || Leads(follower)) return;
  std::erase(flights_.at(at->second).followers, follower);
  flight_of_.erase(at);
}

}  // namespace hidane::routing
