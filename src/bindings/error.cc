#include "bindings/error.h"

#include <new>
#include <utility>

#include "base/thread_object.h"

namespace hipress {
namespace {

struct KeptError {
  Error error{""};
  HipressError about{HIPRESS_ERROR_NONE, HIPRESS_CAUSE_NONE, -1, -1, ""};

  void Set(const Error& other) {
    error = other;
    about = ToStruct(error);
  }
};

/// What this thread's last calls returned pointers to.
struct Kept {
  KeptError last_error, other;
  std::string text;
};

}  // namespace

HipressError ToStruct(const Error& error) {
  return {error.of_job ? HIPRESS_ERROR_JOB : HIPRESS_ERROR_CALL, static_cast<int>(error.cause),
          error.node ? static_cast<int>(error.node->role) : -1, error.node ? int(error.node->rank) : -1,
          error.what()};
}

int HandleException() noexcept {
  KeptError& last = ThreadObject<Kept>().last_error;
  try {
    throw;
  } catch (const Error& error) {
    last.Set(error);
  } catch (const std::bad_alloc&) {
    last.about = {HIPRESS_ERROR_MEMORY, HIPRESS_CAUSE_NONE, -1, -1, "out of memory"};
  } catch (const std::exception& error) {
    last.Set(Error(error.what()));
  } catch (...) {
    last.Set(Error("unknown error"));
  }
  return -1;
}

const HipressError* KeepError(const Error& error) {
  KeptError& kept = ThreadObject<Kept>().other;
  kept.Set(error);
  return &kept.about;
}

const char* KeepString(std::string text) {
  std::string& kept = ThreadObject<Kept>().text;
  kept = std::move(text);
  return kept.c_str();
}

}  // namespace hipress

using namespace hipress;

const HipressError* HipressGetLastError() { return &ThreadObject<Kept>().last_error.about; }

const char* HipressVersion() { return HIPRESS_VERSION; }

int HipressSetInterpreter(const HipressInterpreter* interpreter) {
  return Guarded([&] { interrupt::SetInterpreter(interpreter); });
}

int HipressTakeException(void** type, void** value, void** traceback) {
  return Guarded([&] { interrupt::Take(type, value, traceback); });
}
