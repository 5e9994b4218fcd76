/*!
 * \file error.h
 * \brief Errors of C functions, and texts that they return: kept for each thread until its next
 * call.
 */
#pragma once

#include <exception>
#include <string>
#include <type_traits>

#include "base/interrupt.h"
#include "base/types.h"
#include "hipress/c_api.h"

namespace hipress {

/// The struct of c_api.h. It points into `error`.
HipressError ToStruct(const Error& error);
/// Keeps a copy of `error`, for functions that return a `const HipressError*`.
const HipressError* KeepError(const Error& error);
/// Sets the last error from the exception being handled; call it in a catch block only. Returns -1.
int HandleException() noexcept;
/// Keeps `text`, for functions that return a `const char*`, or bytes.
const char* KeepString(std::string text);

/// Runs the body of a C function, so that no exception crosses the ABI.
/// \return the body's int, or 0 if it returns nothing; after an exception -1, or
/// HIPRESS_INTERRUPTED
template <typename Body>
int Guarded(const Body& body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return 0;
    } else {
      return body();
    }
  } catch (const interrupt::Interrupted&) {
    return HIPRESS_INTERRUPTED;
  } catch (...) {
    return HandleException();
  }
}

}  // namespace hipress
