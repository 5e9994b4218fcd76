// Entropy-coded payloads, of which each table of kernels must make the same.
#include <cstdlib>
#include <random>

#include "fuzz.h"
#include "operator/contrib/kernels.h"
#include "operator/contrib/rans.h"

using namespace hipress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const size_t n = input.Take<uint32_t>() % (3 * kRansBlock);
  const Buffer packed = input.Rest();
  const Buffer first = AllocateBuffer(n), other = AllocateBuffer(n);
  SetActiveKernels(kBaselineKernels);
  const char* const error = RansUnpack(packed.data, packed.size, first.data, n);
  for (const char* name : {"avx2", "avx512"}) {
    const Kernels* kernels = FindKernels(name);
    if (kernels == nullptr) continue;
    SetActiveKernels(*kernels);
    const char* const again = RansUnpack(packed.data, packed.size, other.data, n);
    if (again != error) std::abort();
    if (error == nullptr && n > 0 && std::memcmp(first.data, other.data, n) != 0) std::abort();
  }
  return 0;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  std::mt19937 random(1);
  for (const uint32_t n : {300u, 3000u, 200000u}) {
    for (const unsigned kinds : {1u, 3u, 200u}) {
      std::string plain, packed(n, 0);
      for (uint32_t i = 0; i < n; ++i) {
        plain += static_cast<char>(random() % (i % 2 == 0 ? kinds : 1 + kinds / 2));
      }
      const auto* in = reinterpret_cast<const uint8_t*>(plain.data());
      packed.resize(RansPack(in, n, reinterpret_cast<uint8_t*>(&packed[0]), n));
      seeds.push_back(BytesOf(n) + packed);
    }
  }
  return seeds;
}
