/*!
 * \file life_watch.h
 * \brief Ends a process whose interpreter has stopped, so that its launcher can start it again.
 *
 * If a thread holds Python's global lock, no other Python thread can run. A native thread,
 * hipress-life, ends the process when Renew has not been called for too long. Only time in which
 * that thread ran counts, so stopping (SIGSTOP) or debugging a process does not end it.
 */
#pragma once

#include <string>

namespace hipress::life_watch {

/// Begins to watch, or says that the process lives.
/// \param seconds until the process ends, unless this or End is called before
/// \param signal raised before that, whose handler writes where all threads are; 0: none
/// \param status the process's
/// \param words written to stderr first
void Renew(double seconds, int signal, int status, const std::string& words);
/// Stops watching.
void End();

}  // namespace hipress::life_watch
