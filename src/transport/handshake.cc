#include "transport/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace hipress {
namespace {

/// To be increased together with kMessageVersion. Both sides report a mismatch as an error.
constexpr uint16_t kVersion = 7;

/// HMAC-SHA256 over a label that separates the roles, the transcript and one more byte.
Mac Sign(const std::string& secret, const char* label, const Transcript& transcript, uint8_t extra) {
  std::string text(label);
  text.push_back('\0');
  text.append(reinterpret_cast<const char*>(&transcript), sizeof(transcript));
  text.push_back(static_cast<char>(extra));
  Mac mac;
  unsigned int size = 0;
  const void* key = secret.empty() ? "" : secret.data();
  if (HMAC(EVP_sha256(), key, static_cast<int>(secret.size()),
           reinterpret_cast<const uint8_t*>(text.data()), text.size(), mac.data(),
           &size) == nullptr || size != mac.size()) {
    throw Error("OpenSSL cannot compute an HMAC-SHA256");
  }
  return mac;
}

[[noreturn]] void ThrowBroken(ssize_t result) {
  if (result == 0) throw HandshakeBroken("closed the connection during the handshake");
  throw HandshakeBroken("broke the connection during the handshake: " + ErrnoText(errno));
}

template <typename T>
void SendAll(int fd, const T& value, const Deadline& deadline) {
  const char* data = reinterpret_cast<const char*>(&value);
  for (size_t sent = 0; sent < sizeof(T);) {
    const ssize_t n = send(fd, data + sent, sizeof(T) - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<size_t>(n);
    } else if (errno != EAGAIN && errno != EINTR) {
      ThrowBroken(-1);
    } else if (!WaitFor(fd, false, deadline)) {
      throw HandshakeBroken("took no bytes during the handshake");
    }
  }
}

template <typename T>
T ReceiveAll(int fd, const Deadline& deadline) {
  T value;
  char* data = reinterpret_cast<char*>(&value);
  for (size_t got = 0; got < sizeof(T);) {
    const ssize_t n = recv(fd, data + got, sizeof(T) - got, 0);
    if (n > 0) {
      got += static_cast<size_t>(n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      ThrowBroken(n);
    } else if (!WaitFor(fd, true, deadline)) {
      throw HandshakeBroken("did not answer the handshake in time");
    }
  }
  return value;
}

}  // namespace

const uint8_t kHelloMagic[8] = {'H', 'I', 'P', 'R', 'E', 'S', 'S', 0};

LaneId MakeLaneId(int lanes, Purpose purpose, const SocketAddress& listens) {
  LaneId lane;
  lane.lanes = static_cast<uint8_t>(lanes);
  lane.purpose = purpose;
  lane.address = listens.host();
  lane.port = htons(static_cast<uint16_t>(listens.port()));
  auto* const number = reinterpret_cast<unsigned char*>(&lane.connection);
  if (RAND_bytes(number, sizeof(lane.connection)) != 1) throw Error("OpenSSL cannot produce random bytes");
  return lane;
}

SocketAddress ListensAt(const LaneId& lane) { return {lane.address, ntohs(lane.port)}; }

Hello MakeHello(NodeId from, NodeId to, bool tls, LaneId lane) {
  Hello hello{};
  std::memcpy(hello.magic, kHelloMagic, sizeof(kHelloMagic));
  hello.version = kVersion;
  hello.tls = tls ? 1 : 0;
  hello.from = from.Packed();
  hello.to = to.Packed();
  hello.lane = lane;
  if (RAND_bytes(hello.nonce, sizeof(hello.nonce)) != 1) {
    throw Error("OpenSSL cannot produce random bytes");
  }
  return hello;
}

std::string CheckHello(const Hello& hello) {
  if (std::memcmp(hello.magic, kHelloMagic, sizeof(kHelloMagic)) != 0) return "does not speak HiPress";
  if (hello.version != kVersion) {
    return "speaks version " + std::to_string(hello.version) + " of the handshake, not " +
           std::to_string(kVersion);
  }
  const LaneId& lane = hello.lane;
  const bool lane_can_be = lane.lanes <= kMaxStreams && lane.lane < lane.lanes &&
                           lane.purpose <= Purpose::kProbe && lane.reserved == 0 &&
                           (lane.purpose != Purpose::kPlain || lane.lanes == 1);
  if (!lane_can_be || hello.tls > 1 || hello.reserved != 0 ||
      hello.from >> 16 > uint32_t(Role::kWorker) || hello.to >> 16 > uint32_t(Role::kWorker)) {
    return "sent a malformed greeting";
  }
  return "";
}

Mac CallerProof(const std::string& secret, const Transcript& transcript) {
  return Sign(secret, "hipress caller", transcript, 0);
}
Mac ListenerProof(const std::string& secret, const Transcript& transcript, uint8_t verdict) {
  return Sign(secret, "hipress listener", transcript, verdict);
}
Mac TlsKey(const std::string& secret, const Transcript& transcript) {
  return Sign(secret, "hipress tls key", transcript, 0);
}

bool Equal(const Mac& a, const uint8_t* b) { return CRYPTO_memcmp(a.data(), b, a.size()) == 0; }

void CheckTlsMode(const std::string& mode) {
  if (mode != "auto" && mode != "on" && mode != "off") {
    throw Error("HIPRESS_TLS is '" + mode + "', but must be auto, on or off");
  }
}

bool WantsTls(const std::string& mode, const SocketAddress& a, const SocketAddress& b) {
  // What goes from an address to the same address does not leave the host.
  if (mode == "auto") return !a.IsSameHost(b) && !(a.IsLoopback() && b.IsLoopback());
  return mode == "on";
}

Transcript CallerHandshake(int fd, const std::string& secret, NodeId self, NodeId peer, bool tls,
                           const Deadline& deadline, LaneId lane) {
  Transcript transcript;
  transcript.caller = MakeHello(self, peer, tls, lane);
  SendAll(fd, transcript.caller, deadline);
  transcript.listener = ReceiveAll<Hello>(fd, deadline);
  const std::string wrong = CheckHello(transcript.listener);
  if (!wrong.empty()) throw Error("whatever listens there " + wrong);
  if ((transcript.listener.tls != 0) != tls) {
    throw Error(std::string("this end ") + (tls ? "wants" : "does not want") +
                " TLS and the other " + (tls ? "does not" : "does") +
                "; set HIPRESS_TLS to the same value on all nodes");
  }
  const LaneId& answer = transcript.listener.lane;
  if (answer.connection != lane.connection || answer.lane != lane.lane || answer.lanes > lane.lanes ||
      answer.purpose != lane.purpose || answer.generation != lane.generation) {
    throw Error("whatever listens there sent a malformed greeting");
  }
  const Mac proof = CallerProof(secret, transcript);
  SendAll(fd, proof, deadline);
  const Verdict verdict = ReceiveAll<Verdict>(fd, deadline);
  if (verdict.code == uint8_t(VerdictCode::kWrongSecret)) {
    throw Error("it has another job secret; set HIPRESS_SECRET to the same value on all nodes");
  }
  if (!Equal(ListenerProof(secret, transcript, verdict.code), verdict.mac)) {
    throw Error("it could not prove that it knows the job secret (HIPRESS_SECRET)");
  }
  switch (static_cast<VerdictCode>(verdict.code)) {
    case VerdictCode::kAccepted:
      if (transcript.listener.from == peer.Packed()) {
        if (Confirms(lane, tls)) SendAll(fd, kConfirmation, deadline);
        return transcript;
      }
      [[fallthrough]];
    case VerdictCode::kNotMe:
      throw Error(NodeId::Unpack(transcript.listener.from).ToString() + " listens there");
    case VerdictCode::kTaken:
      throw Error("it is already connected to a node that calls itself " + self.ToString());
    case VerdictCode::kGone: throw Error("it no longer has that connection");
    default: throw Error("it refused with code " + std::to_string(verdict.code));
  }
}

}  // namespace hipress
