/*!
 * \file lanes.h
 * \brief The sockets of a connection: one, or several that are one stream (striped.h) on a long link.
 */
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "van/handshake.h"
#include "van/socket.h"
#include "van/stream.h"
#include "van/van.h"

namespace hipress {

struct Lane {
  UniqueFd fd;
  std::unique_ptr<Stream> stream;
};

using Lanes = std::vector<Lane>;

/// Calls a node: connects and authenticates as many sockets as its distance calls for.
/// \return none if it cannot be reached now, with *why. \throw as CallerHandshake
Lanes OpenLanes(const sockaddr_in& remote, const VanOptions& options, NodeId self, NodeId peer,
                SteadyTime deadline, std::string* why);

/// Accepted sockets of connections of which not all are there yet.
class Gathering {
 public:
  /// \return all lanes of the connection, if this is the last one; else none
  Lanes Add(const Transcript& transcript, Lane lane, SteadyTime now);
  /// Closes those of callers that do not open the rest.
  void DropOld(SteadyTime now);

 private:
  struct Group {
    Lanes lanes;
    SteadyTime since;
  };
  std::map<std::pair<uint32_t, uint16_t>, Group> groups_;  ///< by caller and its number
};

}  // namespace hipress
