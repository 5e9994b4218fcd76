/*!
 * \file handshake.h
 * \brief Authenticates two nodes to each other by the job secret.
 *
 * Messages of fixed size, before any other byte is interpreted (docs/reference/transport.md):
 *   caller -> listener  Hello      who calls whom, TLS or not, a fresh nonce
 *   listener -> caller  Hello      the same from the other end
 *   caller -> listener  Proof      HMAC(secret, "caller", both hellos)
 *   listener -> caller  Verdict    accepted or why not, HMAC(secret, "listener", both, verdict)
 * Then, if both hellos say so, TLS 1.3 keyed from the secret and both nonces. Otherwise one more
 * byte, so that a caller that gave up before it read the verdict is not taken for a peer:
 *   caller -> listener  kConfirmation
 */
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/types.h"
#include "transport/socket.h"

namespace hipress {

using Mac = std::array<uint8_t, 32>;

/// What a caller wants of a socket.
enum class Purpose : uint8_t {
  kPlain = 0,      ///< to be a connection that lasts as long as the socket does
  kResumable = 1,  ///< to be a lane of a connection that can be resumed (resumable_stream.h)
  kResume = 2,     ///< to be a new lane of such a connection, which has broken
  kProbe = 3,      ///< nothing: notifies the listener that a connection it called has broken
};

/// Which of its connection's sockets a socket is.
struct LaneId {
  uint32_t connection = 0;  ///< the caller's random number for it; the same when it is resumed
  /// Sockets: as many as the caller wants, then as many as the listener allows.
  uint8_t lanes = 1;
  uint8_t lane = 0;        ///< from 0
  Purpose purpose = Purpose::kPlain;
  uint8_t reserved = 0;    ///< 0
  SocketAddress::HostBytes address{};  ///< where the connection's caller listens
  uint16_t port = 0;                   ///< in network byte order; 0: nowhere
  /// Counts tries to resume the connection; of a probe: the one that broke.
  uint16_t generation = 0;
};
static_assert(sizeof(LaneId) == 28, "has no padding");

constexpr int kMaxStreams = 16;

struct Hello {
  uint8_t magic[8];
  uint16_t version;
  uint8_t tls;          ///< 1 if this end wants TLS
  uint8_t reserved;     ///< 0
  uint32_t from;        ///< NodeId, packed
  uint32_t to;          ///< NodeId, packed
  LaneId lane;
  uint8_t nonce[16];
};
static_assert(sizeof(Hello) == 64, "sent as it lies in memory");

enum class VerdictCode : uint8_t {
  kAccepted = 0,
  kWrongSecret = 1,  ///< the only one whose MAC cannot be checked by its receiver
  kNotMe = 2,        ///< the listener is another node than the caller wants
  kTaken = 3,        ///< a node of the caller's name is already connected
  kGone = 4,         ///< the listener has no such connection (any more)
};

struct Verdict {
  uint8_t code;
  uint8_t mac[32];
};
static_assert(sizeof(Verdict) == 33, "sent as it lies in memory");

constexpr uint8_t kConfirmation = 6;  ///< ASCII's ACK

/// Whether an accepted caller confirms it. A probe ends then.
constexpr bool Confirms(const LaneId& lane, bool tls) { return !tls && lane.purpose != Purpose::kProbe; }

/// Both hellos; what every MAC covers.
struct Transcript {
  Hello caller;
  Hello listener;
};

/// Beginning of every hello.
extern const uint8_t kHelloMagic[8];

Hello MakeHello(NodeId from, NodeId to, bool tls, LaneId lane = {});
/// Of the first socket of a new connection of a node that listens at `listens`.
LaneId MakeLaneId(int lanes, Purpose purpose, const SocketAddress& listens);
/// Where the caller of a lane's connection listens.
SocketAddress ListensAt(const LaneId& lane);
/// \return empty if the hello is well formed, else what is wrong, as a clause
std::string CheckHello(const Hello& hello);
Mac CallerProof(const std::string& secret, const Transcript& transcript);
Mac ListenerProof(const std::string& secret, const Transcript& transcript, uint8_t verdict);
/// The pre-shared key of this connection's TLS.
Mac TlsKey(const std::string& secret, const Transcript& transcript);
/// Compares in constant time.
bool Equal(const Mac& a, const uint8_t* b);

/// Whether a connection uses TLS: `mode` is "auto" (unless both ends are on one host), "on", "off".
bool WantsTls(const std::string& mode, const SocketAddress& a, const SocketAddress& b);
/// \throw Error for any other mode
void CheckTlsMode(const std::string& mode);

/// The connection broke off, or the peer did not answer in time: worth another try.
struct HandshakeBroken : Error {
  using Error::Error;
};

/// The caller's side on a connected non-blocking socket, waiting with poll. \return the transcript
/// \throw HandshakeBroken, or Error with a clause that says why the other end is the wrong one
Transcript CallerHandshake(int fd, const std::string& secret, NodeId self, NodeId peer, bool tls,
                           const Deadline& deadline, LaneId lane = {});

}  // namespace hipress
