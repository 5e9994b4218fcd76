/*!
 * \file log.h
 * \brief One line to stderr, prefixed with the sender's name ("hipress worker 2: ...").
 */
#pragma once

#include <string>

namespace hipress {

/// Sets the speaker's name for all later lines of this process, e.g. "worker 2".
void SetLogName(const std::string& name);
/// Something the user should know, but that harmed nothing (a stranger was refused, say).
void LogWarning(const std::string& line);
/// Progress, shown only with HIPRESS_VERBOSE=1.
void LogInfo(const std::string& line);

}  // namespace hipress
