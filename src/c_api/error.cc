#include "c_api/error.h"

#include <new>
#include <utility>

#include "hipress/c_api.h"

namespace hipress {
namespace {

std::string& LastError() {
  static thread_local std::string error;
  return error;
}

}  // namespace

void SetLastError(const std::string& sentence) { LastError() = sentence; }

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
  static thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

}  // namespace hipress

const char* HipressGetLastError() { return hipress::LastError().c_str(); }

const char* HipressVersion() { return HIPRESS_VERSION; }
