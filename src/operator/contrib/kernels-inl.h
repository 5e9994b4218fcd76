/*!
 * \file kernels-inl.h
 * \brief The kernels, written once on the primitives of one simd_*.h and compiled for each of them.
 *
 * Loops run over groups of 64 elements; scalar-inl.h, which also defines the results, does the tail.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_KERNELS_INL_H_
#define HIPRESS_OPERATOR_CONTRIB_KERNELS_INL_H_

namespace hipress {
namespace {

/// Calls f with a value of the C++ type of `dtype`.
template <typename Function>
inline void WithType(DType dtype, Function f) {
  switch (dtype) {
    case DType::kFloat32: return f(float());
    case DType::kFloat16: return f(Float16());
    case DType::kBFloat16: return f(BFloat16());
  }
}

/// The elements that whole groups cover.
inline size_t WholeGroups(size_t n) { return n / kGroup * kGroup; }

// Dense -----------------------------------------------------------------------------------------------

void Convert(const void* in, DType in_type, size_t n, void* out, DType out_type) {
  if (in_type == out_type) {
    std::memcpy(out, in, n * SizeOf(in_type));
    return;
  }
  WithType(in_type, [=](auto a) {
    WithType(out_type, [=](auto b) {
      using In = decltype(a);
      using Out = decltype(b);
      const size_t end = WholeGroups(n);
      for (size_t i = 0; i < end; i += kLanes) Store<Out>(out, i, Load<In>(in, i));
      ScalarConvert<In, Out>(in, end, n, out);
    });
  });
}

void Add(const void* in, DType in_type, const float* residual, size_t n, void* out, DType out_type) {
  WithType(in_type, [=](auto a) {
    WithType(out_type, [=](auto b) {
      using In = decltype(a);
      using Out = decltype(b);
      const size_t end = WholeGroups(n);
      for (size_t i = 0; i < end; i += kLanes) {
        Store<Out>(out, i, Load<In>(in, i) + Load<float>(residual, i));
      }
      ScalarAdd<In, Out>(in, residual, end, n, out);
    });
  });
}

void Sum(const uint8_t* const* in, DType in_type, size_t count, size_t n, float* sum) {
  WithType(in_type, [=](auto a) {
    using In = decltype(a);
    const size_t end = WholeGroups(n);
    for (size_t i = 0; i < end; i += kGroup) {
      F total[kVectors];
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) total[v] = Load<In>(in[0], i + v * kLanes);
      for (size_t k = 1; k < count; ++k) {
#pragma GCC unroll 16
        for (size_t v = 0; v < kVectors; ++v) total[v] += Load<In>(in[k], i + v * kLanes);
      }
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) Store<float>(sum, i + v * kLanes, total[v]);
    }
    ScalarSum<In>(in, count, end, n, sum);
  });
}

// 2bit ------------------------------------------------------------------------------------------------

void TwoBitEncode(const void* gradient, DType dtype, size_t n, float threshold, float* residual,
                  uint8_t* payload) {
  WithType(dtype, [=](auto a) {
    using T = decltype(a);
    const F plus = Set(threshold), minus = Set(-threshold);
    const size_t end = WholeGroups(n);
    for (size_t i = 0; i < end; i += kGroup) {
      M pos[kVectors], neg[kVectors];
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) {
        const size_t at = i + v * kLanes;
        const F r = Load<float>(residual, at) + Load<T>(gradient, at);
        pos[v] = GreaterEqual(r, plus);
        neg[v] = LessEqual(r, minus);
        Store<float>(residual, at, TakeThreshold(r, pos[v], neg[v], plus));
      }
      StoreCodes(pos, neg, payload + i / 4);
    }
    ScalarTwoBitEncode<T>(gradient, end, n, threshold, residual, payload);
  });
}

void TwoBitDecode(const uint8_t* payload, size_t n, float threshold, void* out, DType dtype) {
  WithType(dtype, [=](auto a) {
    using T = decltype(a);
    const CodeTable table(threshold);
    const size_t end = WholeGroups(n);
    for (size_t i = 0; i < end; i += kGroup) {
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) {
        Store<T>(out, i + v * kLanes, DecodeCodes(payload + i / 4, v, table));
      }
    }
    ScalarTwoBitDecode<T>(payload, end, n, threshold, out);
  });
}

/// int8 counters hold the sum of this many payloads' levels or bits.
constexpr size_t kMaxCounted = 127;

/*!
 * \brief sum[i] = finish(counter of element i), for whole groups.
 * \param add adds kBytes elements of one payload, from element i on, to int8 counters
 * \param finish makes the result of counters that are converted to float (exactly)
 */
template <typename AddPayload, typename Finish>
inline void CountedSum(size_t count, size_t end, float* sum, AddPayload add, Finish finish) {
  alignas(64) int8_t counters[kGroup];
  for (size_t i = 0; i < end; i += kGroup) {
    F total[kVectors];
    for (size_t v = 0; v < kVectors; ++v) total[v] = Zero();
    for (size_t first = 0; first < count; first += kMaxCounted) {
      const size_t last = count - first < kMaxCounted ? count : first + kMaxCounted;
#pragma GCC unroll 4
      for (size_t j = 0; j < kGroup; j += kBytes) {
        B part = B();
        for (size_t k = first; k < last; ++k) part = add(part, k, i + j);
        StoreBytes(counters + j, part);
      }
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) {
        total[v] += LoadInt8(counters + v * kLanes);  // integers below 2^24: exact
      }
    }
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) Store<float>(sum, i + v * kLanes, finish(total[v]));
  }
}

void TwoBitSum(const uint8_t* const* payloads, size_t count, size_t n, float threshold, float* sum) {
  const size_t end = WholeGroups(n);
  const F unit = Set(threshold);
  CountedSum(
      count, end, sum,
      [=](B counts, size_t k, size_t i) { return AddLevels(counts, payloads[k] + i / 4); },
      [=](F levels) { return levels * unit; });
  ScalarTwoBitSum(payloads, count, end, n, threshold, sum);
}

// 1bit ------------------------------------------------------------------------------------------------

/// Turns each byte's lowest bit into its highest and so on.
inline uint64_t ReverseInBytes(uint64_t x) {
  x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
  x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
  return (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
}

void OneBitEncode(const void* gradient, DType dtype, size_t n, float threshold, float scale,
                  float* residual, uint8_t* payload) {
  WithType(dtype, [=](auto a) {
    using T = decltype(a);
    const F limit = Set(threshold), plus = Set(scale), minus = Set(-scale);
    const size_t end = WholeGroups(n);
    for (size_t i = 0; i < end; i += kGroup) {
      M above[kVectors];
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) {
        const size_t at = i + v * kLanes;
        const F r = Load<float>(residual, at) + Load<T>(gradient, at);
        above[v] = Greater(r, limit);
        Store<float>(residual, at, r - Select(above[v], plus, minus));
      }
      const uint64_t bits = ReverseInBytes(JoinMasks(above));
      std::memcpy(payload + i / 8, &bits, sizeof(bits));
    }
    ScalarOneBitEncode<T>(gradient, end, n, threshold, scale, residual, payload);
  });
}

void OneBitDecode(const uint8_t* payload, size_t n, float scale, void* out, DType dtype) {
  WithType(dtype, [=](auto a) {
    using T = decltype(a);
    const float values[2] = {-scale, scale};
    const BitTable table(values);
    const size_t end = WholeGroups(n);
    for (size_t i = 0; i < end; i += kGroup) {
      uint64_t bits;
      std::memcpy(&bits, payload + i / 8, sizeof(bits));
      bits = ReverseInBytes(bits);
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) {
        Store<T>(out, i + v * kLanes, DecodeBits(bits, v, table));
      }
    }
    ScalarOneBitDecode<T>(payload, end, n, scale, out);
  });
}

void OneBitSum(const uint8_t* const* payloads, size_t count, size_t n, float scale, float* sum) {
  const size_t end = WholeGroups(n);
  const F unit = Set(scale), all = Set(static_cast<float>(count));
  CountedSum(
      count, end, sum,
      [=](B counts, size_t k, size_t i) { return AddOnes(counts, payloads[k] + i / 8); },
      [=](F ones) { return (ones + ones - all) * unit; });
  ScalarOneBitSum(payloads, count, end, n, scale, sum);
}

// onebit ----------------------------------------------------------------------------------------------

/// Whole groups of one block of at most kBlockOfSum elements, [begin, end).
template <typename T, bool kLazy>
inline void SignEncodeBlock(const void* gradient, size_t begin, size_t end, const float* values,
                            float* residual, uint8_t* bits, BlockSums* block, size_t* count) {
  constexpr size_t kSums = kLanesOfSum / kLanes;
  F negative[kSums], nonnegative[kSums];
  for (size_t s = 0; s < kSums; ++s) negative[s] = nonnegative[s] = Zero();
  const F below = Set(kLazy ? values[0] : 0), above = Set(kLazy ? values[1] : 0);
  for (size_t i = begin; i < end; i += kGroup) {
    M masks[kVectors];
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = i + v * kLanes;
      F r = Load<float>(residual, at);
      if (kLazy) r -= Select(GreaterEqual(r, Zero()), above, below);
      const F x = r + Load<T>(gradient, at);
      Store<float>(residual, at, x);
      masks[v] = GreaterEqual(x, Zero());
      nonnegative[v % kSums] = AddIf(nonnegative[v % kSums], masks[v], x);
      negative[v % kSums] = AddUnless(negative[v % kSums], masks[v], x);
    }
    const uint64_t joined = JoinMasks(masks);
    std::memcpy(bits + i / 8, &joined, sizeof(joined));
    *count += static_cast<size_t>(__builtin_popcountll(joined));
  }
  for (size_t s = 0; s < kSums; ++s) {
    Store<float>(block->negative, s * kLanes, negative[s]);
    Store<float>(block->nonnegative, s * kLanes, nonnegative[s]);
  }
}

template <typename T, bool kLazy>
inline void SignEncodeAll(const void* gradient, size_t n, const float* values, float* residual,
                          uint8_t* bits, PartSums* sums) {
  size_t count = 0;
  for (size_t begin = 0; begin < n; begin += kBlockOfSum) {
    const size_t end = n - begin < kBlockOfSum ? n : begin + kBlockOfSum;
    const size_t whole = WholeGroups(end);
    BlockSums block;
    SignEncodeBlock<T, kLazy>(gradient, begin, whole, values, residual, bits, &block, &count);
    if (whole != end) {
      ScalarSignEncode<T>(gradient, whole, end, values, residual, bits, &block, &count);
    }
    block.AddTo(sums);
  }
  sums->nonnegative_count = count;
}

void SignEncode(const void* gradient, DType dtype, size_t n, const float* values, float* residual,
                uint8_t* bits, PartSums* sums) {
  WithType(dtype, [=](auto a) {
    using T = decltype(a);
    if (values != nullptr) {
      SignEncodeAll<T, true>(gradient, n, values, residual, bits, sums);
    } else {
      SignEncodeAll<T, false>(gradient, n, values, residual, bits, sums);
    }
  });
}

void SignDecode(const uint8_t* bits, size_t n, const float* values, void* out, DType dtype) {
  WithType(dtype, [=](auto a) {
    using T = decltype(a);
    const BitTable table(values);
    const size_t end = WholeGroups(n);
    for (size_t i = 0; i < end; i += kGroup) {
      uint64_t word;
      std::memcpy(&word, bits + i / 8, sizeof(word));
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) {
        Store<T>(out, i + v * kLanes, DecodeBits(word, v, table));
      }
    }
    ScalarSignDecode<T>(bits, end, n, values, out);
  });
}

void SignSum(const uint8_t* const* bits, const float* values, size_t count, size_t n, float* sum) {
  const size_t end = WholeGroups(n);
  for (size_t i = 0; i < end; i += kGroup) {
    F total[kVectors];
    uint64_t word;
    std::memcpy(&word, bits[0] + i / 8, sizeof(word));
    const BitTable first(values);
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) total[v] = DecodeBits(word, v, first);
    for (size_t k = 1; k < count; ++k) {
      std::memcpy(&word, bits[k] + i / 8, sizeof(word));
      const BitTable table(values + 2 * k);
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) total[v] += DecodeBits(word, v, table);
    }
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) Store<float>(sum, i + v * kLanes, total[v]);
  }
  ScalarSignSum(bits, values, count, end, n, sum);
}

}  // namespace

const Kernels HIPRESS_SIMD_TABLE = {
    HIPRESS_SIMD_NAME, Convert,      Add,       Sum,        TwoBitEncode, TwoBitDecode, TwoBitSum,
    OneBitEncode,      OneBitDecode, OneBitSum, SignEncode, SignDecode,   SignSum,
};

}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_KERNELS_INL_H_
