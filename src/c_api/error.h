/*!
 * \file error.h
 * \brief Reports errors of C functions: -1, and a HipressError kept per thread; or HIPRESS_INTERRUPTED.
 *
 * Every C function wraps its body so that no exception crosses the ABI:
 * \code
 *   int HipressDoIt(...) {
 *     API_BEGIN();
 *     ...;            // may throw
 *     API_END();
 *   }
 * \endcode
 */
#pragma once

#include <exception>
#include <string>

#include "common/interrupt.h"
#include "common/types.h"
#include "hipress/c_api.h"

namespace hipress {

/// The struct of c_api.h. It points into `error`.
HipressError ToStruct(const Error& error);
/// Keeps a copy of `error` until this thread's next call, for functions that return a `const HipressError*`.
const HipressError* KeepError(const Error& error);
/// Sets the last error from the exception being handled; call it in a catch block only. Returns -1.
int HandleException() noexcept;
/// Keeps a copy of `text` until this thread's next call, for functions that return a `const char*`.
const char* KeepString(std::string text);

}  // namespace hipress

#define API_BEGIN() try {
#define API_END()                       \
  }                                     \
  catch (const ::hipress::interrupt::Interrupted&) { \
    return HIPRESS_INTERRUPTED;         \
  }                                     \
  catch (...) {                         \
    return ::hipress::HandleException(); \
  }                                     \
  return 0
