/*!
 * \file thread_object.h
 * \brief Objects of threads that stay usable while their thread, or the process, ends.
 *
 * A thread_local object is destroyed when its thread ends: the main thread's before exit handlers
 * and static destructors run. Those of other libraries may still call into this one, which would
 * then use freed memory.
 */
#pragma once

namespace hipress {

/// This thread's only T. If it is used after the thread's objects were destroyed, it is created
/// again, and never freed.
template <typename T>
T& ThreadObject() {
  static __thread T* object = nullptr;
  struct Owner {
    ~Owner() {
      delete object;
      object = nullptr;
    }
  };
  if (object == nullptr) {
    object = new T();
    thread_local Owner owner;
    static_cast<void>(owner);
  }
  return *object;
}

}  // namespace hipress
