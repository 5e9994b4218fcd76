/*!
 * \file debug_dumps.h
 * \brief Writes files about what the nodes of this process are doing, for `hipress debug`.
 *
 * A thread, hipress-debug, writes them when a wait for other nodes takes too long, and on a signal
 * (SIGUSR1). The program's own handler of the signal still runs. A forked child writes nothing. A
 * file is a JSON object of what Begin writes and what the node adds (docs/guides/debug-a-hang.md).
 */
#pragma once

#include <functional>
#include <string>

#include "base/json.h"

namespace hipress::debug_dumps {

/// A node that dumps describe.
struct Node {
  std::function<std::string()> name;            ///< "worker 0"
  std::function<void(JsonWriter* json)> describe;  ///< adds its part to an object
};

/// The number of a signal: SIGUSR1 for "", 0 for "none", else of a name (USR2, SIGUSR2) or number.
/// \throw Error that names HIPRESS_DEBUG_SIGNAL
int SignalOf(const std::string& text);

/// Registers a node: from now on it is dumped, also on that signal if it is not 0.
/// \return for Remove
int Add(Node node, int signal);
/// Waits until what has been asked for is written. Not under a lock that `describe` takes.
void Remove(int number);

/// Sets the status of a part of this process that cannot be asked in a hang, such as a Python
/// agent. Dumps contain its last status and how old it is.
/// \param name "agent 2"; it is dumped from the first call on, also on the signal if that is not 0
/// \param json a JSON object; empty: the part is gone
void SetStatus(const std::string& name, const std::string& json, int signal);

/// Dumps all nodes of this process as they are now; the files are written a little later.
/// \param reason in one sentence. Not under a lock that `describe` takes
void Request(const std::string& reason);
/// Does that, and throws an Error of the same sentence about a wait that took too long.
[[noreturn]] void GiveUp(const std::string& sentence);

/// Begins an object with what is the same for all nodes of this process.
void Begin(JsonWriter* json, const std::string& reason);

}  // namespace hipress::debug_dumps
