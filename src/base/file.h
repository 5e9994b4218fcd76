/*!
 * \file file.h
 * \brief Writes files that are never seen half written.
 */
#pragma once

#include <string>

namespace hipress {

/// Replaces a file's content atomically: after a crash or on a full disk the old file is complete.
/// The file's mode stays, and a link stays a link. A device or a pipe is written to.
/// \return "", or the system's error message
std::string ReplaceFile(const std::string& path, const std::string& content);

}  // namespace hipress
