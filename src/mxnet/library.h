/*!
 * \file library.h
 * \brief The functions of the loaded libmxnet.so that the engine bridge calls.
 */
#pragma once

#include <cstdint>
#include <string>

namespace hipress::mxnet {

using NDArrayHandle = void*;

/// mxnet::Context: where an operation runs.
struct Context {
  int32_t dev_type = 1;  // CPU
  int32_t dev_id = 0;
};

/// mxnet::engine::CallbackOnComplete. Lives on the engine's stack: copy it, call the copy later.
struct OnComplete {
  void (*callback)(void* engine, void* param, const void* error) = nullptr;
  void* engine = nullptr;
  void* param = nullptr;

  /// `error` is null or a std::runtime_error, which is all that dmlc::Error is.
  void operator()(const void* error) const { callback(engine, param, error); }
};

/// mxnet::FnProperty::kAsync: done when OnComplete is called; skipped if an array is in error.
constexpr int kAsync = 4;

using AsyncFunc = void (*)(void* run_context, void* on_complete, void* param);
using ParamDeleter = void (*)(void* param);

class Library {
 public:
  /// \throw Error if `path` is not loaded or lacks a function
  explicit Library(const std::string& path);

  /// Schedules func(param) with `array` read or written. `deleter` runs exactly once.
  /// \throw Error
  void PushAsync(AsyncFunc func, void* param, ParamDeleter deleter, NDArrayHandle array,
                 bool writes, int priority, const char* name) const;
  /*!
   * \brief Makes room in MXNet's list of exceptions, so that it does not move when a job fails.
   *
   * ThreadedEngine::OnComplete appends to that list and searches it without a lock. We end operations
   * in error one by one, but MXNet's threads search while we append. The room stays, as the list is
   * only ever cleared. Blocks until MXNet has computed everything.
   * \throw Error if it could not
   */
  void ReserveExceptions() const;
  /// Another handle of the same array, to be given to Free.
  NDArrayHandle Share(NDArrayHandle array) const;
  void Free(NDArrayHandle array) const;

  /// Whether it has n elements of this type, not sparse, and not on a GPU.
  bool IsDenseOnCpu(NDArrayHandle array, int64_t n, int dtype) const;

  /*!
   * \brief The array's memory, inside an operation that holds it; never waits.
   *
   * MXNet keeps arrays that its convolutions touched in oneDNN's private layouts. To be read, such
   * an array is copied into *copy (to be given to Free); to be written, its layout is reset.
   * \throw Error if that is not possible with this libmxnet.so
   */
  void* ReadableData(NDArrayHandle array, NDArrayHandle* copy) const;
  void* WritableData(NDArrayHandle array) const;

 private:
  template <typename F>
  void Find(F* function, const char* name, bool required = true);
  void Check(int code, const char* what) const;
  bool PlainData(NDArrayHandle array, void** data) const;

  void* handle_ = nullptr;
  std::string path_;
  const char* (*get_last_error_)() = nullptr;
  int (*push_async_nd_)(AsyncFunc, void*, ParamDeleter, const void*, NDArrayHandle*, int,
                        NDArrayHandle*, int, const void*, int, const char*, bool) = nullptr;
  int (*shallow_copy_)(NDArrayHandle, NDArrayHandle*) = nullptr;
  int (*free_)(NDArrayHandle) = nullptr;
  int (*create_)(const uint32_t*, uint32_t, int, int, int, int, NDArrayHandle*) = nullptr;
  int (*wait_all_)() = nullptr;
  int (*get_data_)(NDArrayHandle, void**) = nullptr;
  int (*get_dtype_)(NDArrayHandle, int*) = nullptr;
  int (*get_storage_type_)(NDArrayHandle, int*) = nullptr;
  int (*get_context_)(NDArrayHandle, int*, int*) = nullptr;
  int (*get_shape_)(NDArrayHandle, int*, const int64_t**) = nullptr;
  int (*to_dlpack_)(NDArrayHandle, void**) = nullptr;
  int (*call_dlpack_deleter_)(void*) = nullptr;
  // Member functions of mxnet::NDArray, called with `this` (and the result's address) by hand.
  void* (*reorder_to_default_)(void* result, const void* array) = nullptr;
  void (*invalidate_layout_)(void* array) = nullptr;
};

}  // namespace hipress::mxnet
