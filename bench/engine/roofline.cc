/// What this machine can do, as the yardstick of bench/engine: a plain GEMM by oneDNN in bf16 and
/// f32, a copy and a read through memory. One JSON object on stdout. usage: roofline THREADS
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <functional>
#include <numeric>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// Shortest of `runs`, seconds.
double Best(int runs, const std::function<void()>& fn) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    fn();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

/// GFLOP/s of C = A B with matrices of n x n in the library's own layout; 0 if it can't.
double Gemm(dnnl::memory::data_type type) {
  using dnnl::memory;
  constexpr memory::dim n = 2048;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc a({n, n}, type, memory::format_tag::ab),
      any({n, n}, type, memory::format_tag::any);
  const memory::desc c({n, n}, memory::data_type::f32, memory::format_tag::ab);
  try {
    const dnnl::matmul::primitive_desc desc({a, any, c}, engine);
    const dnnl::matmul matmul(desc);
    memory x(a, engine), w(desc.weights_desc(), engine), y(c, engine);
    std::memset(x.get_data_handle(), 0, a.get_size());
    std::memset(w.get_data_handle(), 0, desc.weights_desc().get_size());
    const std::unordered_map<int, memory> args = {
        {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
    const double seconds = Best(10, [&] {
      matmul.execute(stream, args);
      stream.wait();
    });
    return 2e-9 * n * n * n / seconds;
  } catch (const dnnl::error&) {
    return 0;
  }
}

/// fn(thread) on `threads` threads at once.
void OnThreads(int threads, const std::function<void(int)>& fn) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(fn, i);
  fn(0);
  for (std::thread& other : others) other.join();
}

struct Memory {
  double copy, read;  ///< GB/s; a copy counts its bytes once
};

Memory MeasureMemory(int threads) {
  constexpr size_t kBytes = size_t{128} << 20;  // a thread
  const size_t words = kBytes / sizeof(uint64_t);
  std::vector<std::vector<uint64_t>> from(threads, std::vector<uint64_t>(words, 1)), to = from;
  std::vector<uint64_t> sums(threads);
  const double gigabytes = 1e-9 * kBytes * threads;
  const double copy = Best(7, [&] {
    OnThreads(threads, [&](int t) { std::memcpy(to[t].data(), from[t].data(), kBytes); });
  });
  const double read = Best(7, [&] {
    OnThreads(threads, [&](int t) {
      uint64_t sum[8] = {};
      for (size_t i = 0; i < words; i += 8)
        for (size_t j = 0; j < 8; ++j) sum[j] += from[t][i + j];
      sums[t] += std::accumulate(sum, sum + 8, uint64_t{0});
    });
  });
  if (sums[0] == 0) std::abort();  // keeps the reads
  return {gigabytes / copy, gigabytes / read};
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  omp_set_num_threads(threads);
  const double bf16 = Gemm(dnnl::memory::data_type::bf16), f32 = Gemm(dnnl::memory::data_type::f32);
  const Memory memory = MeasureMemory(threads);
  std::printf(
      "{\"threads\":%d,\"gemm_bf16_gflops\":%.1f,\"gemm_f32_gflops\":%.1f,"
      "\"copy_gbps\":%.2f,\"read_gbps\":%.2f}\n",
      threads, bf16, f32, memory.copy, memory.read);
}
