/*!
 * \file file.h
 * \brief Writes files that are never seen half written.
 */
#pragma once

#include <string>

namespace hipress {

/// Replaces a file's content at once: after a crash or on a full disk the old one is still whole. The
/// file's mode stays, and a link stays a link. What is no regular file (a device, a pipe) is written
/// to as it is.
/// \return "", or the system's reason why it could not be done
std::string ReplaceFile(const std::string& path, const std::string& content);

}  // namespace hipress
