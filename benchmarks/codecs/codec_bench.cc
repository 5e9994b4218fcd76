/*!
 * \file codec_bench.cc
 * \brief Speed of every codec, on one thread and on two: GB/s of float32 gradient, and the memory
 *        traffic as a share of what memcpy moves in the same run. Prints one JSON object per line.
 *
 * Usage: codec_bench [seconds per measurement, default 0.3] [all: every instruction set] [CODEC...]
 * With names, only codecs of which the label has one of them. Codes of all widths (maxmin) that
 * stay in the cache are measured with every instruction set in any case. run.py shows the result as
 * a table, with NumPy and torch.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "operator/contrib/codec.h"
#include "operator/contrib/kernels.h"

namespace {

using namespace hipress;  // NOLINT(build/namespaces): a program of one file

double seconds_per_measurement = 0.3;
std::vector<std::string> wanted;  // parts of labels; none: all

bool IsWanted(const std::string& label) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& part) {
           return label.find(part) != std::string::npos;
         });
}

/// Fastest of many runs. Other programs share this machine, so the minimum is the best estimate.
double BestSeconds(const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  run();  // faults pages in, fills caches
  double best = 1e9;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds_per_measurement);
  do {
    const auto begin = Clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  } while (Clock::now() < end);
  return best;
}

/// Normal values, different in each payload, in huge pages, as NumPy gives them to the peers.
Buffer Gradient(size_t n, unsigned seed) {
  static const std::vector<float> values = [] {
    std::vector<float> all(size_t(16) << 20);
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0.0f, 0.5f);
    for (float& value : all) value = normal(random);
    return all;
  }();
  Buffer buffer = AllocateState(n * 4);
  for (size_t i = 0; i < n; ++i) buffer.as<float>()[i] = values[(i + seed * 100003) % values.size()];
  return buffer;
}

double copy_rate = 0;  // bytes read + written per second by one thread, for the size at hand

/// \param bytes_moved per element: what a perfect kernel must read and write
void Report(const char* table, int threads, const std::string& codec, const std::string& operation,
            size_t n, double bytes_moved, const std::function<void()>& run) {
  const double seconds = BestSeconds(run);
  std::printf("{\"kernels\": \"%s\", \"threads\": %d, \"codec\": \"%s\", \"operation\": \"%s\", "
              "\"elements\": %zu, \"gb_per_s\": %.3f, \"bytes\": %.3f, \"copy_gb_per_s\": %.2f, "
              "\"of_copy\": %.3f}\n",
              table, threads, codec.c_str(), operation.c_str(), n, n * 4 / seconds * 1e-9,
              bytes_moved, copy_rate * 1e-9, n * bytes_moved / seconds / copy_rate);
  std::fflush(stdout);
}

struct Case {
  const char* label;
  const char* type;
  ParamList params;
  double encode, decode;  ///< bytes that a perfect kernel moves for an element, the payload included
};

/// Residual: 8 bytes; a gradient that is looked at twice, out of the cache: 4 more.
const Case kCases[] = {
    {"none", "none", {}, 8, 8},
    {"2bit", "2bit", {}, 12.25, 4.25},
    {"1bit", "1bit", {}, 12.125, 4.125},
    {"onebit", "onebit", {}, 12.125, 4.125},
    {"tbq", "tbq", {{"threshold", "0.5"}}, 12.25, 4.25},
    {"ternary", "ternary", {}, 16.2, 4.2},
    {"ternary, momentum 0.9", "ternary", {{"momentum", "0.9"}}, 24.2, 4.2},
    {"stc", "stc", {}, 16.1, 4.1},
    {"terngrad, 2 bits", "terngrad", {}, 8.25, 4.25},
    {"terngrad, 8 bits", "terngrad", {{"bitwidth", "8"}}, 9, 5},
    {"terngrad, 8 bits, nearest", "terngrad", {{"bitwidth", "8"}, {"stochastic", "0"}}, 9, 5},
    {"maxmin, 4 bits", "maxmin", {}, 4.51, 4.51},
    {"maxmin, 8 bits", "maxmin", {{"bits", "8"}}, 5.01, 5.01},
    {"maxmin, 1 bit", "maxmin", {{"bits", "1"}}, 4.13, 4.13},
    {"maxmin, 2 bits", "maxmin", {{"bits", "2"}}, 4.26, 4.26},
    {"maxmin, 3 bits", "maxmin", {{"bits", "3"}}, 4.38, 4.38},
    {"maxmin, 5 bits", "maxmin", {{"bits", "5"}}, 4.63, 4.63},
    {"maxmin, 6 bits", "maxmin", {{"bits", "6"}}, 4.76, 4.76},
    {"maxmin, 7 bits", "maxmin", {{"bits", "7"}}, 4.88, 4.88},
    {"maxmin, 4 bits, entropy", "maxmin", {{"entropy", "1"}}, 4.4, 4.4},
    {"maxmin, 8 bits, entropy", "maxmin", {{"bits", "8"}, {"entropy", "1"}}, 4.9, 4.9},
    {"maxminef, 4 bits", "maxminef", {}, 12.51, 4.51},
    {"maxminef, 8 bits", "maxminef", {{"bits", "8"}}, 13.01, 5.01},
    {"natural", "natural", {}, 5.125, 5.125},
    {"fp16", "fp16", {}, 6, 6},
    {"bf16", "bf16", {}, 6, 6},
    {"lossless", "lossless", {}, 7.41, 7.41},
    {"topk, 0.1%", "topk", {{"ratio", "0.001"}}, 12, 4},
    {"graddrop, 1%", "graddrop", {{"drop", "0.99"}}, 12.05, 4.05},
    {"dgc, 0.1%", "dgc", {{"ratio", "0.001"}}, 20, 4},
    {"dgc, 1%", "dgc", {{"ratio", "0.01"}}, 20.05, 4.05},
    {"dct, 1/128", "dct", {}, 12.01, 4.01},
    {"randomk, 1%", "randomk", {}, 12.05, 4.05},
};

constexpr size_t kInCache = size_t(64) << 10;  ///< elements of a gradient that stays in the cache

/// Return whether a case is maxmin with one of its widths and no other parameter.
bool IsWidth(const Case& what) {
  return std::strcmp(what.type, "maxmin") == 0 &&
         (what.params.empty() || (what.params.size() == 1 && what.params[0].first == "bits"));
}

void BenchmarkCodec(const Case& what, size_t n, int threads) {
  CodecPtr codec = MakeCodec(what.type, what.params);
  if (threads > 1) {
    codec = codec->OnThreads(threads);
    if (codec == nullptr) return;
  }
  const char* table = ActiveKernels().name;
  constexpr size_t kCount = 8;
  Buffer gradient = Gradient(n, 1), out = AllocateState(n * 4);
  std::vector<Buffer> payloads;
  std::vector<Payload> received;
  for (size_t k = 0; k < kCount; ++k) {
    const Buffer other = Gradient(n, static_cast<unsigned>(k));
    payloads.push_back(AllocateBuffer(codec->MaxPayloadBytes(n, DType::kFloat32)));
    CodecState fresh;
    const size_t bytes = codec->Encode(other.data, DType::kFloat32, n, &fresh, payloads[k].data,
                                       DType::kFloat32);
    received.push_back({payloads[k].data, bytes});
  }
  CodecState state;
  Buffer payload = AllocateBuffer(codec->MaxPayloadBytes(n, DType::kFloat32));
  Report(table, threads, what.label, "encode", n, what.encode, [&] {
    codec->Encode(gradient.data, DType::kFloat32, n, &state, payload.data, DType::kFloat32);
  });
  Report(table, threads, what.label, "decode", n, what.decode, [&] {
    codec->Decode(received[0], n, DType::kFloat32, out.data, DType::kFloat32);
  });
  Report(table, threads, what.label, "sum of 8", n, 4 + kCount * (what.decode - 4), [&] {
    codec->DecodeSum(received.data(), kCount, n, DType::kFloat32, out.as<float>());
  });
}

/// Straightforward loops for comparison: 2bit as MXNet's CPU kernel does it, element by element.
void BenchmarkNaive(size_t n) {
  Buffer gradient = Gradient(n, 1), residual = Gradient(n, 2), out = AllocateState(n * 4);
  std::vector<uint8_t> payload((n + 15) / 16 * 4);
  Report("naive loop", 1, "2bit", "encode", n, 12.25, [&] {
    const float* g = gradient.as<float>();
    float* r = residual.as<float>();
    for (size_t i = 0; i < n; ++i) {
      if (i % 4 == 0) payload[i / 4] = 0;
      r[i] += g[i];
      if (r[i] >= 0.5f) {
        payload[i / 4] |= 0xc0 >> (i % 4 * 2);
        r[i] -= 0.5f;
      } else if (r[i] <= -0.5f) {
        payload[i / 4] |= 0x80 >> (i % 4 * 2);
        r[i] += 0.5f;
      }
    }
  });
  Report("naive loop", 1, "2bit", "decode", n, 4.25, [&] {
    float* o = out.as<float>();
    for (size_t i = 0; i < n; ++i) {
      const int code = payload[i / 4] >> (6 - i % 4 * 2) & 3;
      o[i] = code == 3 ? 0.5f : code == 2 ? -0.5f : 0.0f;
    }
  });
  Report("naive loop", 1, "onebit", "encode", n, 12.125, [&] {
    const float* g = gradient.as<float>();
    float* r = residual.as<float>();
    double sum[2] = {0, 0};
    size_t count[2] = {0, 0};
    for (size_t i = 0; i < n; ++i) {
      r[i] += g[i];
      sum[r[i] >= 0] += r[i];
      ++count[r[i] >= 0];
    }
    const float mean[2] = {float(sum[0] / (count[0] + 1)), float(sum[1] / (count[1] + 1))};
    for (size_t i = 0; i < n; ++i) {
      if (i % 8 == 0) payload[i / 8] = 0;
      payload[i / 8] |= (r[i] >= 0) << (i % 8);
      r[i] -= mean[r[i] >= 0];
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) seconds_per_measurement = std::atof(argv[1]);
  const bool all = argc > 2 && std::strcmp(argv[2], "all") == 0;
  wanted.assign(argv + std::min(argc, all ? 3 : 2), argv + argc);
  for (const size_t n : {kInCache, size_t(16) << 20}) {
    Buffer from = Gradient(n, 1), to = AllocateState(n * 4);
    const Kernels& best = ActiveKernels();
    for (const char* name : {"baseline", "avx2", "avx512"}) {
      const Kernels* kernels = FindKernels(name);
      if (kernels == nullptr) continue;
      SetActiveKernels(*kernels);
      for (const Case& what : kCases) {
        if (!IsWanted(what.label)) continue;
        if (!all && kernels != &best && !(IsWidth(what) && n == kInCache)) continue;
        // Measured again for each codec, because other programs share this machine.
        copy_rate = n * 8 / BestSeconds([&] { std::memcpy(to.data, from.data, n * 4); });
        BenchmarkCodec(what, n, 1);
        if (kernels == &best) BenchmarkCodec(what, n, 2);
      }
    }
    SetActiveKernels(best);
    if (wanted.empty()) BenchmarkNaive(n);
  }
}
