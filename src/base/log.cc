#include "base/log.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace hipress {
namespace {

std::mutex& Mutex() {
  static std::mutex* mutex = new std::mutex();
  return *mutex;
}
std::string& Name() {
  static std::string* name = new std::string();
  return *name;
}

void Print(const char* level, const std::string& line) {
  std::lock_guard<std::mutex> lock(Mutex());
  std::fprintf(stderr, "hipress%s%s: %s%s\n", Name().empty() ? "" : " ", Name().c_str(), level,
               line.c_str());
}

}  // namespace

void SetLogName(const std::string& name) {
  std::lock_guard<std::mutex> lock(Mutex());
  Name() = name;
}

void LogWarning(const std::string& line) { Print("warning: ", line); }

void LogInfo(const std::string& line) {
  static const bool verbose = [] {
    const char* value = std::getenv("HIPRESS_VERBOSE");
    return value != nullptr && std::strcmp(value, "0") != 0;
  }();
  if (verbose) Print("", line);
}

}  // namespace hipress
