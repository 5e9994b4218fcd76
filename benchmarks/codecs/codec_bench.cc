/*!
 * \file codec_bench.cc
 * \brief One thread's speed of every codec: GB/s of float32 gradient, and the memory traffic as a
 *        share of what memcpy moves in the same run. Prints one JSON object per line.
 *
 * Usage: codec_bench [seconds per measurement, default 0.3]
 * run.py shows the result as a table, with NumPy and torch beside it.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "operator/contrib/codec.h"
#include "operator/contrib/kernels.h"

namespace {

using namespace hipress;  // NOLINT(build/namespaces): a program of one file

double seconds_per_measurement = 0.3;

/// Fastest of many runs: others share this machine, so the minimum is the honest time.
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

Buffer Gradient(size_t n, unsigned seed) {
  Buffer buffer = AllocateBuffer(n * 4);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.5f);
  float table[4096];
  for (float& value : table) value = normal(random);
  for (size_t i = 0; i < n; ++i) buffer.as<float>()[i] = table[(i * 2654435761u + seed) % 4096];
  return buffer;
}

double copy_rate = 0;  // bytes read + written per second, for the size at hand

/// \param bytes_moved per element: what a perfect kernel reads and writes
void Report(const char* table, const std::string& codec, const std::string& operation, size_t n,
            double bytes_moved, const std::function<void()>& run) {
  const double seconds = BestSeconds(run);
  std::printf("{\"kernels\": \"%s\", \"codec\": \"%s\", \"operation\": \"%s\", \"elements\": %zu, "
              "\"gb_per_s\": %.2f, \"copy_gb_per_s\": %.2f, \"of_copy\": %.3f}\n",
              table, codec.c_str(), operation.c_str(), n, n * 4 / seconds * 1e-9, copy_rate * 1e-9,
              n * bytes_moved / seconds / copy_rate);
  std::fflush(stdout);
}

void BenchmarkCodec(const std::string& config, double payload_bytes, bool residual, size_t n) {
  const CodecPtr codec = MakeCodec(config);
  const char* table = ActiveKernels().name;
  const std::string name = codec->Name();
  constexpr size_t kCounts[] = {2, 8};
  Buffer gradient = Gradient(n, 1), out = AllocateBuffer(n * 4);
  std::vector<Buffer> payloads;
  std::vector<Payload> received;
  const size_t bytes = codec->MaxPayloadBytes(n, DType::kFloat32);
  CodecState state;
  for (size_t k = 0; k < 8; ++k) {
    const Buffer other = Gradient(n, static_cast<unsigned>(k));
    payloads.push_back(AllocateBuffer(bytes));
    CodecState fresh;
    codec->Encode(other.data, DType::kFloat32, n, &fresh, payloads[k].data, DType::kFloat32);
    received.push_back({payloads[k].data, bytes});
  }
  Report(table, name, "encode", n, 4 + (residual ? 8 : 0) + payload_bytes, [&] {
    codec->Encode(gradient.data, DType::kFloat32, n, &state, payloads[0].data, DType::kFloat32);
  });
  Report(table, name, "decode", n, 4 + payload_bytes, [&] {
    codec->Decode(received[0], n, DType::kFloat32, out.data, DType::kFloat32);
  });
  if (codec->IsIdentity()) {
    Report(table, "float16", "convert", n, 6, [&] {
      codec->Encode(gradient.data, DType::kFloat32, n, &state, out.data, DType::kFloat16);
    });
    Report(table, "bfloat16", "convert", n, 6, [&] {
      codec->Encode(gradient.data, DType::kFloat32, n, &state, out.data, DType::kBFloat16);
    });
  }
  for (const size_t count : kCounts) {
    Report(table, name, "sum of " + std::to_string(count), n, 4 + count * payload_bytes, [&] {
      codec->DecodeSum(received.data(), count, n, DType::kFloat32, out.as<float>());
    });
  }
}

/// The loops one writes first, for comparison: 2bit as MXNet's CPU kernel does it, element by element.
void BenchmarkNaive(size_t n) {
  Buffer gradient = Gradient(n, 1), residual = Gradient(n, 2), out = AllocateBuffer(n * 4);
  std::vector<uint8_t> payload((n + 15) / 16 * 4);
  Report("naive loop", "2bit", "encode", n, 12.25, [&] {
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
  Report("naive loop", "2bit", "decode", n, 4.25, [&] {
    float* o = out.as<float>();
    for (size_t i = 0; i < n; ++i) {
      const int code = payload[i / 4] >> (6 - i % 4 * 2) & 3;
      o[i] = code == 3 ? 0.5f : code == 2 ? -0.5f : 0.0f;
    }
  });
  Report("naive loop", "onebit", "encode", n, 12.125, [&] {
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
  for (const size_t n : {size_t(64) << 10, size_t(256) << 10, size_t(16) << 20}) {
    Buffer from = Gradient(n, 1), to = AllocateBuffer(n * 4);
    copy_rate = n * 8 / BestSeconds([&] { std::memcpy(to.data, from.data, n * 4); });
    for (const char* name : {"baseline", "avx2", "avx512"}) {
      const Kernels* kernels = FindKernels(name);
      if (kernels == nullptr) continue;
      SetActiveKernels(*kernels);
      BenchmarkCodec("type=none", 4, false, n);
      BenchmarkCodec("type=2bit", 0.25, true, n);
      BenchmarkCodec("type=1bit", 0.125, true, n);
      BenchmarkCodec("type=onebit", 0.125, true, n);
    }
    BenchmarkNaive(n);
  }
}
