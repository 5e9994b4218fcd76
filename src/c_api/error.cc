#include "c_api/error.h"

#include <new>
#include <utility>

#include "common/thread_object.h"
#include "hipress/c_api.h"

namespace hipress {
namespace {

/// Strings of this thread.
struct Texts {
  std::string last_error, kept;
};

}  // namespace

void SetLastError(const std::string& sentence) { ThreadObject<Texts>().last_error = sentence; }

int HandleException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    SetLastError("out of memory");
  } catch (const std::exception& error) {
    SetLastError(error.what());
  } catch (...) {
    SetLastError("unknown error");
  }
  return -1;
}

const char* KeepString(std::string text) {
  std::string& kept = ThreadObject<Texts>().kept;
  kept = std::move(text);
  return kept.c_str();
}

}  // namespace hipress

const char* HipressGetLastError() { return hipress::ThreadObject<hipress::Texts>().last_error.c_str(); }

const char* HipressVersion() { return HIPRESS_VERSION; }

int HipressSetInterpreter(const HipressInterpreter* interpreter) {
  API_BEGIN();
  hipress::interrupt::SetInterpreter(interpreter);
  API_END();
}

int HipressTakeException(void** type, void** value, void** traceback) {
  API_BEGIN();
  hipress::interrupt::Take(type, value, traceback);
  API_END();
}
