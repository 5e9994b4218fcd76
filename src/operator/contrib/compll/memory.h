/*!
 * \file memory.h
 * \brief Vectors from and to memory, whatever the alignment; half precision; gathers. Part of lanes.h.
 */
#ifndef HIPRESS_OPERATOR_CONTRIB_COMPLL_MEMORY_H_
#define HIPRESS_OPERATOR_CONTRIB_COMPLL_MEMORY_H_

namespace hipress {
namespace compll {
namespace {

COMPLL_INLINE I Lanes(int64_t first) {
  I lane;
  for (int l = 0; l < kLanes; ++l) lane[l] = l;
  return lane + static_cast<int32_t>(first);
}

/// Lanes that exist.
template <bool kTail>
COMPLL_INLINE size_t Count(int left) {
  return static_cast<size_t>(kTail && left < kLanes ? (left > 0 ? left : 0) : kLanes);
}

#if defined(COMPLL_AVX512)
/// The mask of the lanes that exist; `left` may be 0 or less, other than in Valid().
COMPLL_INLINE M Existing(int left) { return static_cast<M>(_bzhi_u32(0xffff, left > 0 ? left : 0)); }
#endif

/// V of T[i .. i + kLanes). A tail has only `left` of them, and the rest are 0.
template <bool kTail, typename V, typename T>
COMPLL_INLINE V LoadAs(const T* data, int64_t i, int left) {
  V value = V{};
  if (kTail && left < kLanes) {
#if defined(COMPLL_AVX512)
    if constexpr (sizeof(T) == 4) {
      return reinterpret_cast<V>(_mm512_maskz_loadu_epi32(Existing(left), data + i));
    }
#endif
    std::memcpy(&value, data + i, sizeof(T) * (left > 0 ? left : 0));
  } else {
    std::memcpy(&value, data + i, sizeof(T) * kLanes);
  }
  return value;
}
template <bool kTail>
COMPLL_INLINE F Load(const float* data, int64_t i, int left) {
  return LoadAs<kTail, F>(data, i, left);
}
template <bool kTail>
COMPLL_INLINE I Load(const int32_t* data, int64_t i, int left) {
  return LoadAs<kTail, I>(data, i, left);
}
template <bool kTail>
COMPLL_INLINE U Load(const uint32_t* data, int64_t i, int left) {
  return LoadAs<kTail, U>(data, i, left);
}
using HalfBits = uint16_t __attribute__((vector_size(2 * kLanes)));
COMPLL_INLINE F Widen(HalfBits halves, Float16) {
#if defined(COMPLL_AVX512)
  return _mm512_cvtph_ps(reinterpret_cast<__m256i>(halves));
#elif defined(COMPLL_AVX2)
  return _mm256_cvtph_ps(reinterpret_cast<__m128i>(halves));
#else
  F value;
  for (int l = 0; l < kLanes; ++l) value[l] = ToFloat(Float16{halves[l]});
  return value;
#endif
}
COMPLL_INLINE F Widen(HalfBits halves, BFloat16) {
#if defined(COMPLL_AVX512)
  const U wide = reinterpret_cast<U>(_mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(halves)));
#elif defined(COMPLL_AVX2)
  const U wide = reinterpret_cast<U>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(halves)));
#else
  const U wide = __builtin_convertvector(halves, U);
#endif
  return FromBits(wide << 16);
}
COMPLL_INLINE HalfBits Narrow(F value, Float16) {
#if defined(COMPLL_AVX512)
  return reinterpret_cast<HalfBits>(_mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
#elif defined(COMPLL_AVX2)
  return reinterpret_cast<HalfBits>(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
#else
  HalfBits halves;
  for (int l = 0; l < kLanes; ++l) {
    Float16 half;
    FromFloat(value[l], &half);
    std::memcpy(reinterpret_cast<uint16_t*>(&halves) + l, &half, sizeof(half));
  }
  return halves;
#endif
}
COMPLL_INLINE HalfBits Narrow(F value, BFloat16) {
  const U bits = BitsU(value), high = bits >> 16;
  const U rounded = (bits + 0x7fffu + (high & 1u)) >> 16;
  return __builtin_convertvector(Select(IsNan(value), high | 0x40u, rounded), HalfBits);
}

template <bool kTail, typename H>
COMPLL_INLINE F LoadHalf(const H* data, int64_t i, int left) {
  HalfBits halves = {};
  std::memcpy(&halves, data + i, sizeof(H) * Count<kTail>(left));
  return Widen(halves, H());
}
template <bool kTail>
COMPLL_INLINE F Load(const Float16* data, int64_t i, int left) {
  return LoadHalf<kTail>(data, i, left);
}
template <bool kTail>
COMPLL_INLINE F Load(const BFloat16* data, int64_t i, int left) {
  return LoadHalf<kTail>(data, i, left);
}
template <bool kTail>
COMPLL_INLINE I Load(const uint16_t* data, int64_t i, int left) {
  HalfBits halves = {};
  std::memcpy(&halves, data + i, sizeof(uint16_t) * Count<kTail>(left));
#if defined(COMPLL_AVX512)
  return reinterpret_cast<I>(_mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(halves)));
#elif defined(COMPLL_AVX2)
  return reinterpret_cast<I>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(halves)));
#else
  return __builtin_convertvector(__builtin_convertvector(halves, U), I);
#endif
}

template <bool kTail, typename T, typename V>
COMPLL_INLINE void Put(T* data, int64_t i, int left, V value) {
  if (kTail && left < kLanes) {
#if defined(COMPLL_AVX512)
    if constexpr (sizeof(V) == 64) {
      return _mm512_mask_storeu_epi32(data + i, Existing(left), reinterpret_cast<__m512i>(value));
    }
#endif
    if (left > 0) std::memcpy(data + i, &value, sizeof(T) * left);
  } else {
    std::memcpy(data + i, &value, sizeof(T) * kLanes);
  }
}
template <bool kTail>
COMPLL_INLINE void Store(float* data, int64_t i, int left, F value) {
  Put<kTail>(data, i, left, value);
}
template <bool kTail>
COMPLL_INLINE void Store(int32_t* data, int64_t i, int left, I value) {
  Put<kTail>(data, i, left, value);
}
template <bool kTail>
COMPLL_INLINE void Store(uint32_t* data, int64_t i, int left, U value) {
  Put<kTail>(data, i, left, value);
}
/// Whether n elements of a state that is not read again in this call are written past the cache: if they go
/// to other memory than they came from, its lines would be read first for nothing. Few stay in the cache for
/// the next call.
COMPLL_INLINE bool IsApart(const float* before, const float* state, int64_t n) {
  return state != before && n >= 65536 && reinterpret_cast<uintptr_t>(state) % 64 == 0;
}
template <bool kTail>
COMPLL_INLINE void Store(float* data, int64_t i, int left, F value, bool apart) {
#if defined(COMPLL_AVX512)
  if (!kTail && apart) return _mm512_stream_ps(data + i, value);
#elif defined(COMPLL_AVX2)
  if (!kTail && apart) return _mm256_stream_ps(data + i, value);
#elif defined(__SSE2__)
  if (!kTail && apart) return _mm_stream_ps(data + i, value);
#endif
  Store<kTail>(data, i, left, value);
}
/// Lives as long as such stores of a block. Afterwards they are visible to threads that wait for this one.
struct StoresApart {
  const bool apart;
  ~StoresApart() {
#if defined(__SSE2__)
    if (apart) _mm_sfence();
#endif
  }
};
template <bool kTail, typename H>
COMPLL_INLINE void StoreHalf(H* data, int64_t i, int left, F value) {
  Put<kTail>(data, i, left, Narrow(value, H()));
}
template <bool kTail>
COMPLL_INLINE void Store(Float16* data, int64_t i, int left, F value) {
  StoreHalf<kTail>(data, i, left, value);
}
template <bool kTail>
COMPLL_INLINE void Store(BFloat16* data, int64_t i, int left, F value) {
  StoreHalf<kTail>(data, i, left, value);
}
template <bool kTail>
COMPLL_INLINE void Store(uint16_t* data, int64_t i, int left, I value) {
  Put<kTail>(data, i, left, __builtin_convertvector(value, HalfBits));
}

/// data[index[l]] for each lane, clamped into the vector; 0 from an empty one.
template <typename V, typename T>
COMPLL_INLINE V Gather(const T* data, int64_t size, I index) {
  V value = V{};
  if (size <= 0) return value;
  const I last = Set(static_cast<int32_t>(size > INT32_MAX ? INT32_MAX : size - 1));
  index = Select(Lt(index, I{}), I{}, Select(Gt(index, last), last, index));
#if defined(COMPLL_AVX512)
  return reinterpret_cast<V>(_mm512_i32gather_epi32(reinterpret_cast<__m512i>(index), data, 4));
#elif defined(COMPLL_AVX2)
  return reinterpret_cast<V>(_mm256_i32gather_epi32(reinterpret_cast<const int*>(data),
                                                    reinterpret_cast<__m256i>(index), 4));
#else
  for (int l = 0; l < kLanes; ++l) value[l] = data[index[l]];
  return value;
#endif
}

/// Consecutive elements in one run of a sample: 16 bytes.
constexpr int kRun = 4;
/// The same for the indices at `at`, which come in runs of neighbors, but for the last of all.
template <bool kTail, typename V, typename T>
COMPLL_INLINE V GatherRuns(const T* data, int64_t size, const int32_t* at, I index) {
  if (kTail || at[kLanes - kRun] + kRun > size) return Gather<V>(data, size, index);
#if defined(COMPLL_AVX512)
  const auto run = [&](int r) __attribute__((always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + at[r * kRun]));
  };
  const __m512i first = _mm512_inserti32x4(_mm512_castsi128_si512(run(0)), run(1), 1);
  return reinterpret_cast<V>(
      _mm512_inserti32x4(_mm512_inserti32x4(first, run(2), 2), run(3), 3));
#else
  V value;
  for (int r = 0; r < kLanes / kRun; ++r) {
    std::memcpy(reinterpret_cast<T*>(&value) + r * kRun, data + at[r * kRun], kRun * sizeof(T));
  }
  return value;
#endif
}

/// Lane l of the result is lane l + width (mod kLanes).
template <typename V>
COMPLL_INLINE V TurnLanes(V value, int width) {
  return __builtin_shuffle(value, (Lanes(0) + width) & (kLanes - 1));
}

/// lane j takes in lane j + 16, + 8, + 4, + 2, + 1.
template <typename T, typename V, typename Combine>
COMPLL_INLINE T FoldLanes(const V* sums, Combine combine) {
  V left[kSums];
  COMPLL_UNROLL
  for (int s = 0; s < kSums; ++s) left[s] = sums[s];
  COMPLL_UNROLL
  for (int width = kSums / 2; width > 0; width /= 2) {
    COMPLL_UNROLL
    for (int s = 0; s < width; ++s) left[s] = combine(left[s], left[s + width]);
  }
  V all = left[0];
  COMPLL_UNROLL
  for (int width = kLanes / 2; width > 0; width /= 2) all = combine(all, TurnLanes(all, width));
  return all[0];
}

}  // namespace
}  // namespace compll
}  // namespace hipress

#endif  // HIPRESS_OPERATOR_CONTRIB_COMPLL_MEMORY_H_
