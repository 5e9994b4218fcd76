/*!
 * \file task_api.cc
 * \brief The "Tasks" section of c_api.h: what one rank computes between two messages of a plan, in one
 *        call. A call from Python costs some 10 us with all around it, and a step has hundreds of tasks.
 */
#include <cstddef>
#include <cstring>
#include <vector>

#include "c_api/codec.h"
#include "c_api/error.h"
#include "operator/contrib/kernels.h"

using hipress::ActiveKernels;
using hipress::Codec;
using hipress::DType;
using hipress::DTypeFromFlag;
using hipress::Error;
using hipress::Payload;

// python/hipress/torch/tasks.py has the same fields.
static_assert(sizeof(HipressTask) == 96 && offsetof(HipressTask, num_slots) == 88, "packed");

namespace {

/// A message as c_api.h lays it out.
class Message {
 public:
  explicit Message(void* memory)
      : bytes_(static_cast<uint8_t*>(memory)), words_(static_cast<int64_t*>(memory)) {}

  Payload Get(int64_t index) const {
    const int64_t* entry = Entry(index);
    return {bytes_ + entry[0], static_cast<size_t>(entry[1])};
  }
  /// Where the next payload is to be written.
  uint8_t* Room() const { return bytes_ + words_[kTotal]; }
  /// Says that payload `index` now lies there.
  void Put(int64_t index, size_t size) {
    int64_t* entry = Entry(index);
    entry[0] = words_[kTotal];
    entry[1] = static_cast<int64_t>(size);
    words_[kTotal] += Aligned(entry[1]);
  }

  const char* Wrong(int64_t capacity, int64_t digest, int64_t count) const {
    if (words_[kMagic] != kMagicNumber) return "a message that is not HiPress's";
    if (words_[kDigest] != digest || words_[kCount] != count) {
      return "a message about other gradients or settings";
    }
    const char* kLengths = "a message whose lengths do not fit";
    const int64_t begin = Aligned(8 * (kFields + 2 * count)), total = words_[kTotal];
    if (total < begin || total > capacity) return kLengths;
    if (words_[kFlags] != 0) return "";  // it has no payloads
    for (int64_t index = 0; index < count; ++index) {
      const int64_t offset = Entry(index)[0], size = Entry(index)[1];
      const bool fits = offset >= begin && offset <= total && size >= 0 && size <= total - offset;
      if (!fits || offset % kAlign != 0) return kLengths;
    }
    return "";
  }

 private:
  // Also in python/hipress/torch/message.py, which writes the head.
  enum { kMagic, kTotal, kDigest, kFlags, kCount, kFields };
  static constexpr int64_t kMagicNumber = 0x3148545253504948, kAlign = 64;
  static int64_t Aligned(int64_t size) { return (size + kAlign - 1) / kAlign * kAlign; }
  int64_t* Entry(int64_t index) const { return words_ + kFields + 2 * index; }

  uint8_t* bytes_;
  int64_t* words_;
};

/// One task with its fields in the types that the library has.
class Runner {
 public:
  explicit Runner(HipressTask* task)
      : task_(*task), count_(static_cast<size_t>(task->count)), wire_(Type(task->wire)),
        from_(Type(task->from_type)), to_(Type(task->to_type)),
        factor_(static_cast<float>(task->factor)) {}

  /// False: the list ends here.
  bool Run() {
    switch (task_.op) {
      case HIPRESS_TASK_ENCODE: Encode(); break;
      case HIPRESS_TASK_DECODE: Decode(Get(0)); break;
      case HIPRESS_TASK_DECODE_SUM: DecodeSum(); break;
      case HIPRESS_TASK_DECODE_BYTES:
        Decode({static_cast<const uint8_t*>(task_.from), static_cast<size_t>(task_.bytes)});
        break;
      case HIPRESS_TASK_COPY: Copy(); break;
      case HIPRESS_TASK_ADD: Add(); break;
      case HIPRESS_TASK_ADD_FINITE: return Add();
      case HIPRESS_TASK_KEEP: Keep(); break;
      case HIPRESS_TASK_PASS_ON: PassOn(); break;
      default: throw Error("there is no task of kind " + std::to_string(task_.op));
    }
    return true;
  }

 private:
  static DType Type(int64_t flag) { return DTypeFromFlag(static_cast<int>(flag)); }

  Payload Get(int64_t slot) const {
    return Message(task_.slots[slot].message).Get(task_.slots[slot].index);
  }
  const Codec& TheCodec() const { return *task_.codec->codec; }

  void Encode() {
    if (factor_ != 1.0f) ActiveKernels().scale(task_.from, from_, factor_, count_, task_.from, from_);
    Message message(task_.slots[0].message);
    const size_t size = TheCodec().Encode(task_.from, from_, count_, task_.codec->state.get(),
                                          message.Room(), wire_);
    message.Put(task_.slots[0].index, size);
  }

  void Decode(const Payload& payload) {
    TheCodec().Check(payload, count_, wire_);
    TheCodec().Decode(payload, count_, wire_, task_.to, to_);
  }

  void DecodeSum() {
    std::vector<Payload> payloads;
    for (int64_t k = 0; k < task_.num_slots; ++k) {
      payloads.push_back(Get(k));
      TheCodec().Check(payloads.back(), count_, wire_);
    }
    TheCodec().DecodeSum(payloads.data(), payloads.size(), count_, wire_,
                         static_cast<float*>(task_.to));
  }

  void Copy() {
    if (factor_ != 1.0f) {
      ActiveKernels().scale(task_.from, from_, factor_, count_, task_.to, to_);
    } else {
      ActiveKernels().convert(task_.from, from_, count_, task_.to, to_);
    }
  }

  bool Add() {
    return ActiveKernels().accumulate(task_.from, from_, factor_, count_, task_.to, to_);
  }

  void Keep() {
    task_.bytes = -1;
    if (!ActiveKernels().finite(task_.to, to_, count_)) return;
    const Payload payload = Get(0);
    std::memcpy(task_.from, payload.data, payload.bytes);
    task_.bytes = static_cast<int64_t>(payload.bytes);
  }

  void PassOn() {
    const Payload payload = Get(0);
    TheCodec().Check(payload, count_, wire_);  // so it fits where one of its kind has room
    Message target(task_.slots[1].message);
    std::memcpy(target.Room(), payload.data, payload.bytes);
    target.Put(task_.slots[1].index, payload.bytes);
  }

  HipressTask& task_;
  const size_t count_;
  const DType wire_, from_, to_;
  const float factor_;
};

}  // namespace

int HipressRunTasks(HipressTask* tasks, int64_t num, int64_t* done) {
  API_BEGIN();
  for (*done = 0; *done < num; ++*done) {
    HipressTask* task = tasks + *done;
    if (task->count != 0 && !Runner(task).Run()) break;
  }
  API_END();
}

int HipressCheckMessage(const void* message, int64_t capacity, int64_t digest, int64_t count,
                        const char** wrong) {
  API_BEGIN();
  *wrong = Message(const_cast<void*>(message)).Wrong(capacity, digest, count);
  API_END();
}
