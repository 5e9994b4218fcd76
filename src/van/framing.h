/*!
 * \file framing.h
 * \brief Seals message headers for the wire, and checks those that come from it.
 */
#pragma once

#include <string>

#include "van/shared_payload.h"
#include "van/message.h"

namespace hipress {

/// Fills in magic, version, payload size and both checksums.
/// \throw Error if header.payload_bytes contradicts the payload's size
void Seal(Message* message);

/// Makes a sealed message one whose payload is in shared memory.
void SealShared(Message* message, const SharedPayload& shared);

/// \throw ProtocolError that says which field is wrong
void CheckHeader(const MessageHeader& header, uint64_t max_payload_bytes);

/// \throw ProtocolError unless `actual` is what the header announced
void CheckPayload(const MessageHeader& header, uint32_t actual);

/// "kData", or "unknown kind 99".
std::string NameOf(MessageKind kind);

/// True for the kinds counted as gradient traffic.
inline bool IsData(const MessageHeader& header) {
  return header.kind == MessageKind::kData || header.kind == MessageKind::kFused ||
         header.kind == MessageKind::kFetched;
}

}  // namespace hipress
