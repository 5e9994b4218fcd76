/*!
 * \file framing.h
 * \brief Seals headers before they leave and checks them before anything else is done with them.
 */
#ifndef HIPRESS_VAN_FRAMING_H_
#define HIPRESS_VAN_FRAMING_H_

#include <string>

#include "van/lending.h"
#include "van/message.h"

namespace hipress {

/// Fills in magic, version, payload size and both checksums.
/// \throw Error if header.payload_bytes contradicts the payload's size
void Seal(Message* message);

/// A message without payload.
Message ControlMessage(MessageKind kind);

/// Makes a sealed message one whose payload is lent.
void SealLent(Message* message, const LentPlace& place);

/// \throw ProtocolError that says which field is wrong
void CheckHeader(const MessageHeader& header, uint64_t max_payload_bytes);

/// \throw ProtocolError unless `actual` is what the header announced
void CheckPayload(const MessageHeader& header, uint32_t actual);

/// "kData", or "unknown kind 99".
std::string NameOfKind(uint16_t kind);

/// True for the kinds counted as gradient traffic.
inline bool IsData(const MessageHeader& header) {
  return header.kind == static_cast<uint16_t>(MessageKind::kData) ||
         header.kind == static_cast<uint16_t>(MessageKind::kFused) ||
         header.kind == static_cast<uint16_t>(MessageKind::kFetched);
}

}  // namespace hipress

#endif  // HIPRESS_VAN_FRAMING_H_
