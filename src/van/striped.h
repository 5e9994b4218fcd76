/*!
 * \file striped.h
 * \brief One byte stream over several connections, for links that are long and fast.
 *
 * What one connection has under way is limited by its buffers, and it carries no more than that in a
 * round trip. Here the bytes are cut into stripes, each of which goes, behind its place in the stream,
 * over whichever connection has room. A receiver reads the connection that has the next stripe; what
 * others bring meanwhile waits in their sockets.
 */
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "van/stream.h"

namespace hipress {

class StripedStream final : public Stream {
 public:
  explicit StripedStream(std::vector<std::unique_ptr<Stream>> lanes);

  ssize_t Read(const iovec* pieces, int count) override;
  ssize_t Write(const iovec* pieces, int count) override;
  bool HasUnsent() const override;
  bool ShortReadMeansNothing() const override { return true; }
  bool AwaitsRead(size_t lane) const override;
  bool AwaitsWrite(size_t lane) const override;

 private:
  struct StripeHeader {
    uint64_t offset;  ///< of its first byte in the stream
    uint64_t size;
  };
  struct Lane {
    std::unique_ptr<Stream> stream;
    // Receiving
    StripeHeader header;
    size_t header_bytes = 0;  ///< of it that are here
    bool ended = false;
    // Sending
    std::vector<uint8_t> rest;  ///< of a stripe of which its socket took a part
    size_t rest_sent = 0;
    bool full = false;  ///< its socket took nothing the last time
    bool Unsent() const { return !rest.empty() || stream->HasUnsent(); }
    bool HasStripe() const { return header_bytes == sizeof(StripeHeader); }
  };

  /// \return 1 if the next stripe may be at hand now, else as Stream
  ssize_t ReadHeaders();
  ssize_t ReadStripe(Lane* lane, iovec to);
  /// The header that is here becomes a stripe. \return false if it cannot be one
  bool Check(const Lane& lane) const;
  ssize_t WriteStripe(Lane* lane, const iovec* pieces, int count, size_t size);
  static ssize_t WriteRest(Lane* lane);

  std::vector<Lane> lanes_;
  uint64_t read_ = 0, written_ = 0;  ///< bytes of the stream
  size_t turn_ = 0;                  ///< the lane that the next stripe goes to if it has room
};

}  // namespace hipress
