/*!
 * \file cuda_runtime.h
 * \brief An emulation of CUDA on a CPU: the part of CUDA's header of this name that CompLL's
 * kernels use. With this folder before CUDA's in the include path, a C++ compiler compiles the same
 * source, and tests run kernels without a GPU.
 *
 * Blocks run one after another. The threads of a block are fibers, which run until they wait for
 * each other. With a seed, blocks run in random order, and so do threads between two waits; this
 * reveals missing barriers and dependences between blocks. Shared memory begins as noise.
 * If a wait cannot end (a lane left its warp, or some threads do not reach a barrier), the process
 * prints a message and aborts.
 */
#ifndef HIPRESS_TESTS_CUDA_EMULATION_CUDA_RUNTIME_H_
#define HIPRESS_TESTS_CUDA_EMULATION_CUDA_RUNTIME_H_

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
/// The one shared variable of a kernel; team.cuh declares it otherwise.
#define COMPLL_SHARED(type, name) \
  type& name = *static_cast<type*>(::hipress::emulation::Machine::Get().Shared(sizeof(type)))
#define COMPLL_UNROLL

struct dim3 {
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};
using cudaStream_t = void*;
using cudaError_t = int;
constexpr cudaError_t cudaSuccess = 0;
constexpr cudaError_t cudaErrorMemoryAllocation = 2;
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount };
enum cudaMemcpyKind { cudaMemcpyDefault };

namespace hipress {
namespace emulation {

constexpr int kWarp = 32;

/// xorshift64*: any seed but 0. Seed 0 of a run keeps everything in order.
class Random {
 public:
  void Seed(uint64_t seed) { state_ = seed; }
  bool InOrder() const { return state_ == 0; }
  uint32_t Below(uint32_t limit) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>((state_ * 0x2545F4914F6CDD1Dull >> 32) * limit >> 32);
  }

 private:
  uint64_t state_ = 0;
};

enum class Wait { kNone, kBlock, kWarp, kShuffle, kBallot, kMatch, kDone };

struct Fiber {
  dim3 thread;
  jmp_buf here;
  ucontext_t start;
  std::unique_ptr<char[]> stack;
  bool fresh;
  Wait wait;
};

/// Lanes of a warp wait for each other here; two sets of values, so that a fast lane overwrites
/// nothing.
struct Warp {
  int arrived;
  unsigned round;
  uint64_t values[2][kWarp];
};

class Machine {
 public:
  static Machine& Get() {
    static Machine machine;
    return machine;
  }

  dim3 block, blocks, threads;
  Fiber* current = nullptr;
  Random random;
  int processors = 3;  ///< processors of the emulated GPU: few, so that blocks stride over a grid
  std::mutex mutex;

  /// Runs body() for each thread of each block.
  template <typename Body>
  void Run(unsigned grid, unsigned size, const Body& body) {
    std::vector<unsigned> order(grid);
    for (unsigned b = 0; b < grid; ++b) {
      order[b] = b;
      if (!random.InOrder()) std::swap(order[b], order[random.Below(b + 1)]);
    }
    blocks = {grid, 1, 1};
    threads = {size, 1, 1};
    call_ = [](const void* function) { (*static_cast<const Body*>(function))(); };
    argument_ = &body;
    for (unsigned b : order) RunBlock(b, size);
  }

  /// Waits for all threads of the block; the sum of what they bring.
  int Barrier(int value) {
    current->wait = Wait::kBlock;
    sum_ += value;
    if (++arrived_ == threads.x) {
      arrived_ = 0;
      result_ = sum_;
      sum_ = 0;
      Release(Wait::kBlock, 0, threads.x);
    }
    Switch();
    return result_;
  }

  /// Waits for all lanes of the warp; what each of them brings.
  const uint64_t* Exchange(Wait kind, uint64_t value) {
    const unsigned first = current->thread.x / kWarp * kWarp;
    Warp& warp = warps_[first / kWarp];
    uint64_t* const values = warp.values[warp.round & 1];
    values[current->thread.x - first] = value;
    current->wait = kind;
    if (++warp.arrived == kWarp) {
      warp.arrived = 0;
      ++warp.round;
      for (unsigned lane = 0; lane < kWarp; ++lane) {
        if (fibers_[first + lane]->wait != kind) Stop("lanes of a warp call different functions");
      }
      Release(kind, first, first + kWarp);
    }
    Switch();
    return values;
  }

  void* Shared(size_t bytes) {
    if (bytes > shared_.size() * sizeof(shared_[0])) Stop("more than 48 KiB of shared memory");
    return shared_.data();
  }

 private:
  static constexpr size_t kStack = 1 << 16;

  Machine() : shared_(48 * 1024 / sizeof(uint64_t)) {}

  void RunBlock(unsigned index, unsigned size) {
    block = {index, 0, 0};
    arrived_ = 0;
    sum_ = 0;
    for (uint64_t& word : shared_) word = random.InOrder() ? ~0ull : random.Below(~0u) * 0x100000001ull;
    warps_.assign(size / kWarp, Warp());
    while (fibers_.size() < size) {
      fibers_.push_back(std::make_unique<Fiber>());
      fibers_.back()->stack.reset(new char[kStack]);
    }
    ready_.clear();
    for (unsigned t = 0; t < size; ++t) {
      fibers_[t]->thread = {t, 0, 0};
      fibers_[t]->fresh = true;
      fibers_[t]->wait = Wait::kNone;
      ready_.push_back(fibers_[t].get());
    }
    next_ = 0;
    left_ = size;
    if (_setjmp(main_) == 0) Resume();
    if (left_ != 0) Stop("threads wait for others that have ended or wait elsewhere");
  }

  void Release(Wait kind, unsigned first, unsigned last) {
    for (unsigned t = first; t < last; ++t) {
      if (fibers_[t]->wait != kind) continue;
      fibers_[t]->wait = Wait::kNone;
      ready_.push_back(fibers_[t].get());
    }
  }

  /// Leaves the current fiber for another one that can run.
  void Switch() {
    if (_setjmp(current->here) == 0) Resume();
  }

  [[noreturn]] void Resume() {
    if (next_ == ready_.size()) _longjmp(main_, 1);
    if (!random.InOrder()) {
      const size_t other = next_ + random.Below(static_cast<uint32_t>(ready_.size() - next_));
      std::swap(ready_[next_], ready_[other]);
    }
    current = ready_[next_++];
    if (next_ > 4096) {
      ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(next_));
      next_ = 0;
    }
    if (!current->fresh) _longjmp(current->here, 1);
    current->fresh = false;
    getcontext(&current->start);
    current->start.uc_stack.ss_sp = current->stack.get();
    current->start.uc_stack.ss_size = kStack;
    current->start.uc_link = nullptr;
    makecontext(&current->start, &Machine::Enter, 0);
    setcontext(&current->start);
    std::abort();
  }

  static void Enter() {
    Machine& machine = Get();
    machine.call_(machine.argument_);
    machine.current->wait = Wait::kDone;
    --machine.left_;
    machine.Resume();
  }

  [[noreturn]] static void Stop(const char* what) {
    std::fprintf(stderr, "CUDA emulation: %s\n", what);
    std::abort();
  }

  void (*call_)(const void*) = nullptr;
  const void* argument_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Warp> warps_;
  std::vector<Fiber*> ready_;
  std::vector<uint64_t> shared_;
  size_t next_ = 0;
  unsigned left_ = 0, arrived_ = 0;
  int sum_ = 0, result_ = 0;
  jmp_buf main_;
};

template <typename T>
inline uint64_t ToWord(T value) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(value));
  return word;
}
template <typename T>
inline T FromWord(uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}
inline int LaneIndex() { return static_cast<int>(Machine::Get().current->thread.x % kWarp); }

}  // namespace emulation
}  // namespace hipress

#define threadIdx (::hipress::emulation::Machine::Get().current->thread)
#define blockIdx (::hipress::emulation::Machine::Get().block)
#define gridDim (::hipress::emulation::Machine::Get().blocks)

inline void __syncthreads() { hipress::emulation::Machine::Get().Barrier(0); }
inline int __syncthreads_or(int value) {
  return hipress::emulation::Machine::Get().Barrier(value != 0) != 0;
}
inline void __syncwarp() {
  hipress::emulation::Machine::Get().Exchange(hipress::emulation::Wait::kWarp, 0);
}
inline void __threadfence() {}

template <typename T>
inline T __shfl_sync(unsigned, T value, int lane) {
  using namespace hipress::emulation;
  return FromWord<T>(Machine::Get().Exchange(Wait::kShuffle, ToWord(value))[lane & 31]);
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int other) {
  return __shfl_sync(mask, value, hipress::emulation::LaneIndex() ^ other);
}
/// Lanes whose source does not exist keep their own value, as on the device.
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, int by) {
  const int lane = hipress::emulation::LaneIndex();
  return __shfl_sync(mask, value, lane + by > 31 ? lane : lane + by);
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, int by) {
  const int lane = hipress::emulation::LaneIndex();
  return __shfl_sync(mask, value, lane - by < 0 ? lane : lane - by);
}
inline unsigned __ballot_sync(unsigned, int predicate) {
  using namespace hipress::emulation;
  const uint64_t* const values = Machine::Get().Exchange(Wait::kBallot, predicate != 0);
  unsigned bits = 0;
  for (int lane = 0; lane < kWarp; ++lane) bits |= static_cast<unsigned>(values[lane]) << lane;
  return bits;
}
inline unsigned __match_any_sync(unsigned, unsigned value) {
  using namespace hipress::emulation;
  const uint64_t* const values = Machine::Get().Exchange(Wait::kMatch, value);
  unsigned bits = 0;
  for (int lane = 0; lane < kWarp; ++lane) bits |= unsigned(values[lane] == value) << lane;
  return bits;
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
template <typename T>
inline T atomicAdd(T* at, T value) {
  const T old = *at;
  *at += value;
  return old;
}
inline unsigned atomicOr(unsigned* at, unsigned value) {
  const unsigned old = *at;
  *at |= value;
  return old;
}

// Calls of the runtime. Streams do nothing: all work is done when a call returns.
template <typename... Params, size_t... kIndex>
inline void RunKernel(void (*kernel)(Params...), unsigned grid, unsigned threads, void** arguments,
                      std::index_sequence<kIndex...>) {
  hipress::emulation::Machine& machine = hipress::emulation::Machine::Get();
  std::lock_guard<std::mutex> lock(machine.mutex);
  machine.Run(grid, threads, [&] { kernel(*static_cast<Params*>(arguments[kIndex])...); });
}
template <typename... Params>
inline cudaError_t cudaLaunchKernel(void (*kernel)(Params...), dim3 grid, dim3 threads,
                                    void** arguments, size_t, cudaStream_t) {
  RunKernel(kernel, grid.x, threads.x, arguments, std::index_sequence_for<Params...>());
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
/// No number of a real device, so that callers do not keep its number of processors, which changes.
inline cudaError_t cudaGetDevice(int* device) {
  *device = -1;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = hipress::emulation::Machine::Get().processors;
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** at, size_t bytes) {
  *at = aligned_alloc(256, (bytes + 256) / 256 * 256);
  return *at == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaFree(void* at) {
  free(at);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                                   cudaStream_t) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t) {
  std::memset(at, value, bytes);
  return cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "no error";
}

/// Sets the seed of the order in which blocks and threads run, or 0 for ascending order, and the
/// number of processors.
extern "C" __attribute__((visibility("default"), used)) inline void hipress_cuda_emulate(
    uint64_t seed, int processors) {
  hipress::emulation::Machine& machine = hipress::emulation::Machine::Get();
  machine.random.Seed(seed);
  machine.processors = processors;
}

#endif  // HIPRESS_TESTS_CUDA_EMULATION_CUDA_RUNTIME_H_
