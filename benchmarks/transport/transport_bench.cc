// Throughput of HiPress's transport and of a plain epoll loop, between two processes on loopback in
// the same run. Build: ninja -C build transport_bench. Arguments: repetitions (default 5).
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "channel.h"

namespace hipress {
namespace bench {
namespace {

struct Result {
  double rate = 0;        ///< the best of the repetitions
  double cpu = 0;         ///< CPU seconds of both processes in that repetition
};

double OwnCpu() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Runs `work` once and keeps its rate (units per second) if it is the best so far.
void Measure(Channel* channel, double units, const std::function<void()>& work, Result* best) {
  const double cpu = OwnCpu() + channel->ReceiverCpu();
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  const double rate = units / time.count();
  if (rate > best->rate) *best = {rate, OwnCpu() + channel->ReceiverCpu() - cpu};
}

struct Row {
  const char* label;
  size_t size;
  size_t count;
  enum { kBandwidth, kMessages, kLatency } kind;
  double factor;  ///< application messages in one message
};

}  // namespace

int Main(int repetitions) {
  const Row rows[] = {
      {"4 KiB, GB/s", 4 << 10, 200000, Row::kBandwidth, 1},
      {"64 KiB, GB/s", 64 << 10, 24000, Row::kBandwidth, 1},
      {"1 MiB, GB/s", 1 << 20, 2000, Row::kBandwidth, 1},
      {"4 MiB, GB/s", 4 << 20, 500, Row::kBandwidth, 1},
      {"16 MiB, GB/s", 16 << 20, 120, Row::kBandwidth, 1},
      {"64 B, thousand messages/s", 64, 1000000, Row::kMessages, 1},
      {"64 B in batches of 256, thousand/s", 256 * 64, 50000, Row::kMessages, 256},
      {"64 B, half round trip, us", 64, 5000, Row::kLatency, 1},
  };
  const char* names[] = {"bare epoll", "ours, plain", "ours, TLS", "ours, shared memory"};
  std::printf("%-36s", "loopback, 2 processes");
  for (const char* name : names) std::printf("%26s", name);
  std::printf("%12s\n", "ours/epoll");
  for (const Row& row : rows) {
    Result results[4];
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      for (int which = 0; which < 4; ++which) {
        const auto channel = which == 0 ? MakeBareEpoll() : MakeVanChannel(Lane(which - 1));
        const bool latency = row.kind == Row::kLatency;
        const double units = row.kind == Row::kBandwidth ? 1e-9 * static_cast<double>(row.size * row.count)
                                                         : row.factor * static_cast<double>(row.count);
        const auto work = [&](size_t count) {
          latency ? channel->PingPong(row.size, count) : channel->Stream(row.size, count);
        };
        work(std::max<size_t>(row.count / 20, 4));
        Measure(channel.get(), units, [&] { work(row.count); }, &results[which]);
      }
    }
    std::printf("%-36s", row.label);
    for (const Result& r : results) {
      if (row.kind == Row::kBandwidth) {
        std::printf("%10.2f (%.3f cpu s/GB)", r.rate,
                    r.cpu / (1e-9 * static_cast<double>(row.size * row.count)));
      } else {
        std::printf("%26.1f", row.kind == Row::kMessages ? r.rate / 1000 : 1e6 / r.rate / 2);
      }
    }
    std::printf("%12.2f\n", results[1].rate / results[0].rate);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace bench
}  // namespace hipress

int main(int argc, char** argv) { return hipress::bench::Main(argc > 1 ? std::atoi(argv[1]) : 5); }
