#include "base/interrupt.h"

#include <pthread.h>

#include <atomic>
#include <utility>

#include "hipress/c_api.h"

namespace hipress::interrupt {
namespace {

/// Exception of a signal handler, with its references.
struct Raised {
  void* type = nullptr;
  void* value = nullptr;
  void* traceback = nullptr;
};

thread_local int suspended = 0;
thread_local Raised raised;
std::atomic<const HipressInterpreter*> the_interpreter{nullptr};

}  // namespace

void SetInterpreter(const HipressInterpreter* interpreter) {
  // Never freed, because another thread may use the old one. A process sets it once.
  the_interpreter = interpreter == nullptr ? nullptr : new HipressInterpreter(*interpreter);
}

bool Needed() {
  const HipressInterpreter* const interpreter = the_interpreter;
  return interpreter != nullptr && suspended == 0 &&
         pthread_equal(pthread_self(), static_cast<pthread_t>(interpreter->main_thread)) != 0;
}

void Check() {
  if (!Needed()) return;
  const HipressInterpreter& interpreter = *the_interpreter;
  const int state = interpreter.ensure();
  const bool failed = interpreter.check_signals() != 0;
  if (failed) {
    raised = Raised();
    interpreter.fetch(&raised.type, &raised.value, &raised.traceback);
  }
  interpreter.release(state);
  if (failed) throw Interrupted();
}

void Take(void** type, void** value, void** traceback) {
  const Raised taken = std::exchange(raised, Raised());
  *type = taken.type;
  *value = taken.value;
  *traceback = taken.traceback;
}

Suspended::Suspended() { ++suspended; }
Suspended::~Suspended() { --suspended; }

}  // namespace hipress::interrupt
