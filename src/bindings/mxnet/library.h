/*!
 * \file library.h
 * \brief The functions of the loaded libmxnet.so that engine.cc calls.
 */
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/types.h"

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

using AsyncFunc = void (*)(void* run_context, void* on_complete, void* param);
using ParamDeleter = void (*)(void* param);

class Library {
 public:
  /// \throw Error if `path` is not loaded or lacks a function
  explicit Library(const std::string& path) : path_(path) {
    handle_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle_ == nullptr) throw Error(path + " is not loaded: import mxnet first");
    Find(&get_last_error_, "MXGetLastError");
    Find(&push_async_nd_, "MXEnginePushAsyncND");
    Find(&shallow_copy_, "MXShallowCopyNDArray");
    Find(&free_, "MXNDArrayFree");
    Find(&create_, "MXNDArrayCreateEx");
    Find(&wait_all_, "MXNDArrayWaitAll");
    Find(&get_data_, "MXNDArrayGetData");
    Find(&get_dtype_, "MXNDArrayGetDType");
    Find(&get_storage_type_, "MXNDArrayGetStorageType");
    Find(&get_context_, "MXNDArrayGetContext");
    Find(&get_shape_, "MXNDArrayGetShapeEx64");
    Find(&to_dlpack_, "MXNDArrayToDLPack");
    Find(&call_dlpack_deleter_, "MXNDArrayCallDLPackDeleter");
    Find(&reorder_to_default_, "_ZNK5mxnet7NDArray15Reorder2DefaultEv", false);
    Find(&invalidate_layout_, "_ZN5mxnet7NDArray20InvalidateMKLDNNDataEv", false);
  }

  /// Schedules func(param) with `array` read or written. `deleter` runs exactly once.
  /// \throw Error
  void PushAsync(AsyncFunc func, void* param, ParamDeleter deleter, NDArrayHandle array,
                 bool writes, int priority, const char* name) const {
    const Context context;
    // mxnet::FnProperty::kAsync: done when OnComplete is called; skipped if an array is in error.
    const int property = 4;
    Check(push_async_nd_(func, param, deleter, &context, writes ? nullptr : &array, writes ? 0 : 1,
                         writes ? &array : nullptr, writes ? 1 : 0, &property, priority, name,
                         false),
          "schedule an operation");
  }

  /*!
   * \brief Makes room in MXNet's list of exceptions, so that it does not move when a job fails.
   *
   * ThreadedEngine::OnComplete appends to that list and searches it without a lock. We end
   * operations in error one by one, but MXNet's threads search while we append. The room stays, as
   * the list is only ever cleared. Blocks until MXNet has computed everything.
   * \throw Error if it could not
   */
  void ReserveExceptions() const {
    Check(wait_all_(), "compute all that came before the key-value store");
    const AsyncFunc fail = [](void*, void* on_complete, void*) {
      const std::runtime_error error("none: this makes room for errors");
      (*static_cast<OnComplete*>(on_complete))(&error);
    };
    // An array each: an operation on an array in error inherits the error, and adds none.
    // So many arrays may be in flight when a job fails; more is a model of unusual depth.
    std::vector<NDArrayHandle> arrays(2048);
    for (NDArrayHandle& array : arrays) {
      const uint32_t one = 1;
      Check(create_(&one, 1, Context().dev_type, 0, 1, 0, &array), "make an array");
      PushAsync(fail, nullptr, [](void*) {}, array, true, 0, "HipressReserve");
    }
    wait_all_();  // raises the first of the errors, and clears the list
    for (NDArrayHandle array : arrays) Free(array);
  }

  /// Another handle of the same array, to be given to Free.
  NDArrayHandle Share(NDArrayHandle array) const {
    NDArrayHandle shared = nullptr;
    Check(shallow_copy_(array, &shared), "share an array");
    return shared;
  }

  void Free(NDArrayHandle array) const { free_(array); }

  /// Whether it has n elements of this type, not sparse, and not on a GPU.
  bool IsDenseOnCpu(NDArrayHandle array, int64_t n, int dtype) const {
    constexpr int kDefaultStorage = 0;  // mxnet::NDArrayStorageType
    constexpr int kGpu = 2;             // mxnet::Context::DeviceType
    int value = -1, device = 0, device_id = 0, dimensions = 0;
    Check(get_dtype_(array, &value), "return an array's type");
    if (value != dtype) return false;
    Check(get_storage_type_(array, &value), "return an array's storage type");
    if (value != kDefaultStorage) return false;
    Check(get_context_(array, &device, &device_id), "return an array's device");
    if (device == kGpu) return false;
    const int64_t* shape = nullptr;
    Check(get_shape_(array, &dimensions, &shape), "return an array's shape");
    return std::accumulate(shape, shape + std::max(dimensions, 0), int64_t(1),
                           std::multiplies<int64_t>()) == n;
  }

  /*!
   * \brief The array's memory, inside an operation that holds it; never waits.
   *
   * MXNet keeps arrays that its convolutions touched in oneDNN's private layouts. To be read, such
   * an array is copied into *copy (to be given to Free); to be written, its layout is reset.
   * \throw Error if that is not possible with this libmxnet.so
   */
  void* ReadableData(NDArrayHandle array, NDArrayHandle* copy) const {
    void* data = nullptr;
    if (PlainData(array, &data)) return data;
    if (reorder_to_default_ == nullptr) {
      throw Error("the array is in oneDNN's private layout, which this MXNet cannot convert here: "
                  "push a copy of it, or set MXNET_MKLDNN_ENABLED=0");
    }
    // mxnet::NDArray is far smaller than this memory; its size is not part of the C API. If the
    // layout is not private, the result shares the array's memory.
    *copy = reorder_to_default_(::operator new(4096), array);
    Check(get_data_(*copy, &data), "return an array's memory");
    return data;
  }

  void* WritableData(NDArrayHandle array) const {
    void* data = nullptr;
    if (PlainData(array, &data)) return data;
    if (invalidate_layout_ == nullptr) {
      throw Error("the array is in oneDNN's private layout, which this MXNet cannot reset here: "
                  "pull into another array, or set MXNET_MKLDNN_ENABLED=0");
    }
    invalidate_layout_(array);
    Check(get_data_(array, &data), "return an array's memory");
    return data;
  }

 private:
  template <typename F>
  void Find(F* function, const char* name, bool required = true) {
    void* symbol = dlsym(handle_, name);
    if (symbol == nullptr && required) {
      throw Error(path_ + " has no function " + name + ": MXNet 1.9 is needed");
    }
    std::memcpy(function, &symbol, sizeof(symbol));
  }

  void Check(int code, const char* what) const {
    if (code != 0) throw Error(std::string("MXNet could not ") + what + ": " + get_last_error_());
  }

  // MXNDArrayGetData would wait for an array in a private layout, which inside an operation that
  // holds the array is forever; MXNDArrayToDLPack refuses it instead. But it has no bfloat16.
  bool PlainData(NDArrayHandle array, void** data) const {
    int dtype = -1;
    Check(get_dtype_(array, &dtype), "return an array's type");
    if (dtype == static_cast<int>(DType::kBFloat16)) return false;
    void* tensor = nullptr;
    if (to_dlpack_(array, &tensor) != 0) return false;
    *data = *static_cast<void**>(tensor);  // DLManagedTensor begins with the tensor's data
    call_dlpack_deleter_(tensor);
    return true;
  }

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
