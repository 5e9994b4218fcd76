#include "mxnet/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "common/types.h"

namespace hipress::mxnet {
namespace {

/// The start of DLManagedTensor: all of it that is read here.
struct DLTensorPrefix {
  void* data;
};

/// mxnet::NDArray is far smaller; its size is not part of the C API.
constexpr size_t kArrayBytes = 4096;

/// mxnet::NDArrayStorageType and mxnet::Context::DeviceType.
constexpr int kDefaultStorage = 0;
constexpr int kGpu = 2;

/// Arrays that one job may have on their way when it fails: more is a model of unusual depth.
constexpr int kReservedExceptions = 2048;

}  // namespace

template <typename F>
void Library::Find(F* function, const char* name, bool required) {
  void* symbol = dlsym(handle_, name);
  if (symbol == nullptr && required) {
    throw Error(path_ + " has no function " + name + ": MXNet 1.9 is needed");
  }
  std::memcpy(function, &symbol, sizeof(symbol));
}

Library::Library(const std::string& path) : path_(path) {
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

void Library::Check(int code, const char* what) const {
  if (code != 0) throw Error(std::string("MXNet could not ") + what + ": " + get_last_error_());
}

void Library::PushAsync(AsyncFunc func, void* param, ParamDeleter deleter, NDArrayHandle array,
                        bool writes, int priority, const char* name) const {
  const Context context;
  const int property = kAsync;
  Check(push_async_nd_(func, param, deleter, &context, writes ? nullptr : &array, writes ? 0 : 1,
                       writes ? &array : nullptr, writes ? 1 : 0, &property, priority, name,
                       false),
        "schedule an operation");
}

void Library::ReserveExceptions() const {
  Check(wait_all_(), "compute all that came before the key-value store");
  const AsyncFunc fail = [](void*, void* on_complete, void*) {
    const std::runtime_error error("none: this makes room for errors");
    (*static_cast<OnComplete*>(on_complete))(&error);
  };
  // An array each: what follows an error on the same one inherits that, and adds none.
  std::vector<NDArrayHandle> arrays(kReservedExceptions);
  for (NDArrayHandle& array : arrays) {
    const uint32_t one = 1;
    Check(create_(&one, 1, Context().dev_type, 0, 1, 0, &array), "make an array");
    PushAsync(fail, nullptr, [](void*) {}, array, true, 0, "HipressReserve");
  }
  wait_all_();  // raises the first of them, and forgets all
  for (NDArrayHandle array : arrays) Free(array);
}

NDArrayHandle Library::Share(NDArrayHandle array) const {
  NDArrayHandle shared = nullptr;
  Check(shallow_copy_(array, &shared), "share an array");
  return shared;
}

void Library::Free(NDArrayHandle array) const { free_(array); }

bool Library::IsDenseOnCpu(NDArrayHandle array, int64_t n, int dtype) const {
  int found = -1, device = 0, device_id = 0;
  Check(get_dtype_(array, &found), "tell an array's type");
  if (found != dtype) return false;
  Check(get_storage_type_(array, &found), "tell an array's storage type");
  if (found != kDefaultStorage) return false;
  Check(get_context_(array, &device, &device_id), "tell an array's device");
  if (device == kGpu) return false;
  int dimensions = 0;
  const int64_t* shape = nullptr;
  Check(get_shape_(array, &dimensions, &shape), "tell an array's shape");
  return std::accumulate(shape, shape + std::max(dimensions, 0), int64_t(1),
                         std::multiplies<int64_t>()) == n;
}

// MXNDArrayGetData would wait for an array in a private layout, which inside an operation that
// holds the array is for ever; MXNDArrayToDLPack refuses it instead. But it knows no bfloat16.
bool Library::PlainData(NDArrayHandle array, void** data) const {
  int dtype = -1;
  Check(get_dtype_(array, &dtype), "tell an array's type");
  if (dtype == static_cast<int>(DType::kBFloat16)) return false;
  void* tensor = nullptr;
  if (to_dlpack_(array, &tensor) != 0) return false;
  *data = static_cast<DLTensorPrefix*>(tensor)->data;
  call_dlpack_deleter_(tensor);
  return true;
}

void* Library::ReadableData(NDArrayHandle array, NDArrayHandle* copy) const {
  void* data = nullptr;
  if (PlainData(array, &data)) return data;
  if (reorder_to_default_ == nullptr) {
    throw Error("the array is in oneDNN's private layout, which this MXNet cannot convert here: "
                "push a copy of it, or set MXNET_MKLDNN_ENABLED=0");
  }
  // Copies only if the layout is private; otherwise the result shares the array's memory.
  *copy = reorder_to_default_(::operator new(kArrayBytes), array);
  Check(get_data_(*copy, &data), "give an array's memory");
  return data;
}

void* Library::WritableData(NDArrayHandle array) const {
  void* data = nullptr;
  if (PlainData(array, &data)) return data;
  if (invalidate_layout_ == nullptr) {
    throw Error("the array is in oneDNN's private layout, which this MXNet cannot reset here: "
                "pull into another array, or set MXNET_MKLDNN_ENABLED=0");
  }
  invalidate_layout_(array);
  Check(get_data_(array, &data), "give an array's memory");
  return data;
}

}  // namespace hipress::mxnet
