/*!
 * \file thread_name.h
 * \brief Names of threads, as `top -H`, debuggers and /proc/PID/task/TID/comm show them.
 */
#pragma once

#include <pthread.h>

#include <string>

namespace hipress {

/// Names the calling thread; the kernel keeps 15 characters.
inline void NameThisThread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

}  // namespace hipress
