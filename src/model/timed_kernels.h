#pragma once
#include <fmt/format.h>

#include <array>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "model/kernels.h"

namespace hidane::model {

/// Seconds on the wall, or of CPU time of the whole process: on a shared machine, with one thread,
/// only the latter says how fast a kernel is.
struct Stopwatch {
  bool cpu = false;

  double Now() const {
    timespec now{};
    clock_gettime(cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }
};

/// Time by operation.
struct OpTimes {
  Stopwatch watch;
  enum Op : uint8_t {
    kLinear,
    kOutput,
    kEmbed,
    kNorm,
    kRope,
    kSilu,
    kStore,
    kAttention,
    kSignals,
    kOps
  };
  std::array<double, kOps> seconds{};

  std::string Table() const {
    static constexpr const char* kNames[kOps] = {
        "linear", "output", "embed", "norm", "rope", "silu", "store kv", "attention", "signals"};
    double total = 0;
    for (const double s : seconds) total += s;
    std::string out;
    for (size_t i = 0; i < kOps; ++i) {
      out += fmt::format("    {:10} {:9.1f} ms {:5.1f} %\n", kNames[i], seconds[i] * 1e3,
                         total > 0 ? 100 * seconds[i] / total : 0.0);
    }
    return out;
  }
};

/// A set of kernels that forwards to another and notes how long each operation took. For benches.
class TimedKernels final : public Kernels {
 public:
  TimedKernels(std::unique_ptr<Kernels> inner, OpTimes& times)
      : inner_(std::move(inner)), times_(times) {}

  bool bf16() const override { return inner_->bf16(); }
  std::unique_ptr<Linear> MakeLinear(std::span<const WeightView> parts) override {
    return std::make_unique<TimedLinear>(inner_->MakeLinear(parts), times_);
  }
  void FinishLinears() override { inner_->FinishLinears(); }
  void Embed(const WeightView& table, std::span<const TokenId> rows, Rows out) override {
    const Timer timer(times_, OpTimes::kEmbed);
    inner_->Embed(table, rows, out);
  }
  void RmsNorm(ConstRows x, uint32_t t, std::span<const float> gain, float eps, Rows y) override {
    const Timer timer(times_, OpTimes::kNorm);
    inner_->RmsNorm(x, t, gain, eps, y);
  }
  void Rope(Rows x, uint32_t heads, uint32_t head_dim, std::span<const uint32_t> positions,
            std::span<const float> cos_sin) override {
    const Timer timer(times_, OpTimes::kRope);
    inner_->Rope(x, heads, head_dim, positions, cos_sin);
  }
  void SiluMul(ConstRows gate_up, uint32_t t, uint32_t n, Rows out) override {
    const Timer timer(times_, OpTimes::kSilu);
    inner_->SiluMul(gate_up, t, n, out);
  }
  void StoreKv(ConstRows k, ConstRows v, std::span<const AttentionSeq> seqs, const KvLayout& layout,
               KvLayer kv) override {
    const Timer timer(times_, OpTimes::kStore);
    inner_->StoreKv(k, v, seqs, layout, kv);
  }
  void Attention(ConstRows q, uint32_t heads, float scale, std::span<const AttentionSeq> seqs,
                 const KvLayout& layout, const KvLayer& kv, Rows out,
                 std::span<float> lse) override {
    const Timer timer(times_, OpTimes::kAttention);
    inner_->Attention(q, heads, scale, seqs, layout, kv, out, lse);
  }
  void Signals(ConstRows q, uint32_t heads, float scale, const AttentionSeq& seq,
               const KvLayout& layout, const KvLayer& kv, std::span<const float> lse,
               const SlotSignals& out) override {
    const Timer timer(times_, OpTimes::kSignals);
    inner_->Signals(q, heads, scale, seq, layout, kv, lse, out);
  }

 private:
  class Timer {
   public:
    Timer(OpTimes& times, OpTimes::Op op)
        : watch_(times.watch), seconds_(times.seconds[op]), start_(watch_.Now()) {}
    ~Timer() { seconds_ += watch_.Now() - start_; }

   private:
    Stopwatch watch_;
    double& seconds_;
    double start_;
  };

  class TimedLinear final : public Linear {
   public:
    TimedLinear(std::unique_ptr<Linear> inner, OpTimes& times)
        : inner_(std::move(inner)), times_(times) {}
    uint32_t in() const override { return inner_->in(); }
    uint32_t out() const override { return inner_->out(); }
    void Apply(ConstRows x, uint32_t m, Rows y, Output output) override {
      // The vocabulary is the one matrix that is far taller than wide.
      const Timer timer(times_, out() > 16 * in() ? OpTimes::kOutput : OpTimes::kLinear);
      inner_->Apply(x, m, y, output);
    }

   private:
    std::unique_ptr<Linear> inner_;
    OpTimes& times_;
  };

  std::unique_ptr<Kernels> inner_;
  OpTimes& times_;
};

}  // namespace hidane::model
