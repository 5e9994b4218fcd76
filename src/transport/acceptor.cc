#include "transport/acceptor.h"

#include <asio/ip/tcp.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/log.h"
#include "transport/tls.h"

namespace hipress {
namespace {

using std::chrono::steady_clock;

/// For a caller to prove that it knows the secret.
constexpr std::chrono::seconds kHandshakeTimeout{5};
/// Strangers at a time; beyond it the one that has dawdled longest goes.
constexpr size_t kMaxPending = 256;
/// Connections accepted before the thread turns to something else.
constexpr int kMaxAtOnce = 32;
/// Descriptors of the process that strangers do not get.
constexpr int kReservedDescriptors = 64;

/// The first descriptor that is kept for the job: the kernel gives the lowest one that is free, so
/// its number tells how many are in use.
int FirstReserved() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX) return INT_MAX;
  const int all = static_cast<int>(limit.rlim_cur);
  return all - std::min(kReservedDescriptors, all / 4);
}

}  // namespace

/// One caller that has not proved anything yet. Holds less than 2 KiB until it has.
class PendingHandshake : public std::enable_shared_from_this<PendingHandshake> {
 public:
  PendingHandshake(Acceptor* acceptor, UniqueFd fd, const SocketAddress& remote)
      : acceptor_(acceptor),
        fd_(fd.get()),
        remote_(remote),
        socket_(acceptor->io_),
        deadline_(acceptor->io_) {
    socket_.assign(asio::ip::tcp::v4(), fd.Release());
  }

  void Start() {
    deadline_.expires_after(kHandshakeTimeout);
    deadline_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error && !self->knows_secret_) self->Refuse("did not finish the handshake in time");
    });
    ContinueGuarded();
  }

  void Refuse(const std::string& why) {
    if (acceptor_ == nullptr) return;
    acceptor_->Refused(remote_.ToText(), why);
    Finish();
  }

  bool knows_secret() const { return knows_secret_; }

  /// Closes without a word.
  void Finish() {
    if (acceptor_ == nullptr) return;
    const auto self = shared_from_this();
    asio::error_code ignored;
    socket_.close(ignored);
    deadline_.cancel();
    std::exchange(acceptor_, nullptr)->Forget(this);
  }

 private:
  /// Continues; an error refuses the caller.
  void ContinueGuarded() {
    try {
      Continue();
    } catch (const std::exception& error) {
      Refuse(std::string("cannot be served: ") + error.what());
    }
  }

  enum class State { kHello, kProof, kConfirmation, kTls };

  void Wait(bool readable) {
    socket_.async_wait(readable ? asio::ip::tcp::socket::wait_read
                                : asio::ip::tcp::socket::wait_write,
                       [self = shared_from_this()](const asio::error_code& error) {
                         if (!error && self->acceptor_ != nullptr) self->ContinueGuarded();
                       });
  }

  void Continue() {
    while (acceptor_ != nullptr) {
      if (state_ == State::kTls) return ContinueTls();
      const size_t want = Want();
      const ssize_t n = recv(fd_, input_ + got_, want - got_, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Wait(true);
      // A caller that closes here has timed out, and calls again.
      if (n <= 0 && state_ == State::kConfirmation) return Finish();
      if (n <= 0) return Refuse("closed the connection during the handshake");
      got_ += static_cast<size_t>(n);
      if (state_ == State::kHello && !LooksRight()) return Refuse("does not speak HiPress");
      if (got_ < want) continue;
      got_ = 0;
      switch (state_) {
        case State::kHello: OnHello(); break;
        case State::kProof: OnProof(); break;
        default: OnConfirmation();
      }
    }
  }

  /// Bytes of the message that comes next.
  size_t Want() const {
    switch (state_) {
      case State::kHello: return sizeof(Hello);
      case State::kProof: return sizeof(Mac);
      default: return sizeof(kConfirmation);
    }
  }

  /// The magic is checked byte by byte, so that garbage need not fill a whole hello.
  bool LooksRight() const {
    return std::memcmp(input_, kHelloMagic, std::min(got_, sizeof(kHelloMagic))) == 0;
  }

  /// Whether it is of a connection that there was.
  static bool IsOfOld(const LaneId& lane) {
    return lane.purpose == Purpose::kResume || lane.purpose == Purpose::kProbe;
  }

  void OnHello() {
    std::memcpy(&transcript_.caller, input_, sizeof(Hello));
    const Hello& caller = transcript_.caller;
    const std::string wrong = CheckHello(caller);
    if (acceptor_->only_resume_ && !IsOfOld(caller.lane)) return Finish();
    const NodeId self = acceptor_->hooks_.self();
    const NodeId wanted = NodeId::Unpack(caller.to);
    // Between the roster's arrival at the caller and here, only the caller knows our rank.
    const bool unnamed = self.rank == kUnnamedRank && wanted.role == self.role;
    const bool tls = WantsTls(acceptor_->options_.tls, LocalAddress(fd_), remote_);
    LaneId lane = caller.lane;
    const int max_lanes = acceptor_->options_.streams > 0 ? acceptor_->options_.streams : kMaxStreams;
    lane.lanes = std::min(lane.lanes, static_cast<uint8_t>(max_lanes));
    transcript_.listener = MakeHello(unnamed ? wanted : self, NodeId::Unpack(caller.from), tls, lane);
    if (!SendNow(&transcript_.listener, sizeof(Hello))) return;
    if (!wrong.empty()) return Refuse(wrong);
    if (lane.lane >= lane.lanes) return Refuse("opens more streams than this node allows");
    if ((caller.tls != 0) != tls) {
      return Refuse(std::string(tls ? "does not want" : "wants") +
                    " TLS, unlike this node; HIPRESS_TLS must be the same on all nodes");
    }
    state_ = State::kProof;
  }

  void OnProof() {
    const std::string& secret = acceptor_->options_.secret;
    const NodeId peer = NodeId::Unpack(transcript_.caller.from);
    if (!Equal(CallerProof(secret, transcript_), input_)) {
      return Reject(VerdictCode::kWrongSecret, "does not know the job secret");
    }
    if (transcript_.listener.from != transcript_.caller.to) {
      return Reject(VerdictCode::kNotMe, "is looking for " +
                                             NodeId::Unpack(transcript_.caller.to).ToString());
    }
    const LaneId& lane = transcript_.caller.lane;
    if (acceptor_->only_resume_ && !IsOfOld(lane)) return Finish();  // since its hello
    const VerdictCode verdict = acceptor_->hooks_.judge(transcript_.caller);
    if (verdict == VerdictCode::kTaken) {
      return Reject(verdict, "calls itself " + peer.ToString() + ", which is already connected");
    }
    if (verdict == VerdictCode::kGone) {  // a former peer, whose goodbye was not acknowledged
      LogInfo(peer.ToString() + " (" + remote_.ToText() + ") asks for a connection that is gone");
      if (SendVerdict(verdict)) Finish();
      return;
    }
    if (!SendVerdict(VerdictCode::kAccepted)) return;
    if (lane.purpose == Purpose::kProbe) {
      acceptor_->hooks_.probed(lane);
      return Finish();
    }
    // It knows the secret, but may be late: dropped now, it would take this node for dead.
    deadline_.cancel();
    knows_secret_ = true;
    if (transcript_.listener.tls == 0) {
      state_ = State::kConfirmation;
      return;
    }
    tls_ = std::make_unique<TlsStream>(fd_, false, TlsKey(secret, transcript_));
    state_ = State::kTls;
  }

  void OnConfirmation() {
    if (input_[0] != kConfirmation) return Refuse("does not end the handshake as it should");
    Accept(std::make_unique<PlainStream>(fd_));
  }

  void ContinueTls() {
    switch (tls_->Handshake()) {
      case TlsStream::Progress::kDone: return Accept(std::move(tls_));
      case TlsStream::Progress::kWantRead: return Wait(true);
      case TlsStream::Progress::kWantWrite: return Wait(false);
      case TlsStream::Progress::kFailed: return Refuse("failed at TLS: " + tls_->error());
    }
  }

  void Accept(std::unique_ptr<Stream> stream) {
    Acceptor* acceptor = acceptor_;
    asio::error_code error;
    UniqueFd fd(socket_.release(error));
    if (error) return Refuse("could not be taken over: " + error.message());
    Finish();
    acceptor->hooks_.accepted(transcript_, {std::move(fd), std::move(stream)});
  }

  void Reject(VerdictCode code, const std::string& why) {
    if (SendVerdict(code)) Refuse(why);
  }

  bool SendVerdict(VerdictCode code) {
    Verdict verdict{};
    verdict.code = static_cast<uint8_t>(code);
    // Nothing is computed with the secret for a peer that does not know it.
    if (code != VerdictCode::kWrongSecret) {
      const Mac mac = ListenerProof(acceptor_->options_.secret, transcript_, verdict.code);
      std::memcpy(verdict.mac, mac.data(), mac.size());
    }
    return SendNow(&verdict, sizeof(verdict));
  }

  /// A fresh socket has room for these few bytes; if not, the caller is up to no good.
  bool SendNow(const void* data, size_t size) {
    if (send(fd_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(size)) return true;
    Refuse("closed the connection during the handshake");
    return false;
  }

  Acceptor* acceptor_;  ///< null after the end
  const int fd_;
  const SocketAddress remote_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer deadline_;
  State state_ = State::kHello;
  bool knows_secret_ = false;
  uint8_t input_[sizeof(Hello)];
  size_t got_ = 0;
  Transcript transcript_;
  std::unique_ptr<TlsStream> tls_;
};

Acceptor::Acceptor(asio::io_context& io, UniqueFd listener, const VanOptions& options,
                   VanCounters* counters, Hooks hooks)
    : io_(io),
      listener_(io, listener.Release()),
      pause_(io),
      options_(options),
      counters_(*counters),
      hooks_(std::move(hooks)) {
  CloseInForkedChildren(listener_.native_handle());
}

Acceptor::~Acceptor() {
  if (listener_.is_open()) ForgetInForkedChildren(listener_.native_handle());
}

void Acceptor::Start() { Wait(); }

void Acceptor::Stop() {
  asio::error_code ignored;
  if (listener_.is_open()) ForgetInForkedChildren(listener_.native_handle());
  listener_.close(ignored);
  pause_.cancel();
  while (!pending_.empty()) pending_.front()->Finish();
}

void Acceptor::Wait() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [this](const asio::error_code& error) {
                         if (!error) AcceptGuarded();
                       });
}

void Acceptor::Pause() {
  pause_.expires_after(std::chrono::milliseconds(100));
  pause_.async_wait([this](const asio::error_code& error) {
    if (!error) AcceptGuarded();
  });
}

void Acceptor::AcceptGuarded() {
  try {
    AcceptSome();
  } catch (const std::exception& error) {
    LogWarning(std::string("cannot accept connections at the moment: ") + error.what());
    Pause();
  }
}

void Acceptor::AcceptSome() {
  // Not all, or strangers could keep this thread from everything else.
  for (int i = 0; i < kMaxAtOnce; ++i) {
    sockaddr_storage caller{};
    socklen_t size = sizeof(caller);
    UniqueFd fd(accept4(listener_.native_handle(), reinterpret_cast<sockaddr*>(&caller), &size,
                        SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.get() < 0) {
      if (errno == EAGAIN) return Wait();
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if ((errno == EMFILE || errno == ENFILE) && !pending_.empty()) {
        RefuseSlowest();
        continue;
      }
      // Out of descriptors or memory: the connection stays in the backlog; try again soon.
      return Pause();
    }
    const bool crowded = pending_.size() >= kMaxPending || fd.get() >= FirstReserved();
    if (crowded && !pending_.empty()) {
      RefuseSlowest();
      // The new connection gets its descriptor. Otherwise strangers would keep the reserved ones.
      UniqueFd freed(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
      if (freed.get() >= 0 && freed.get() < fd.get()) fd = std::move(freed);
    }
    const SocketAddress remote(reinterpret_cast<const sockaddr*>(&caller));
    Tune(fd.get(), 2 * options_.heartbeat_timeout, options_.congestion_control);
    pending_.push_back(std::make_shared<PendingHandshake>(this, std::move(fd), remote));
    pending_.back()->Start();
  }
  Wait();
}

void Acceptor::RefuseSlowest() {
  const auto stranger = std::find_if(pending_.begin(), pending_.end(),
                                     [](const auto& p) { return !p->knows_secret(); });
  // A copy: what is refused is forgotten.
  const std::shared_ptr<PendingHandshake> slowest = stranger != pending_.end() ? *stranger : pending_.front();
  slowest->Refuse("was too slow in a crowd of callers");
}

void Acceptor::Refused(const std::string& address, const std::string& why) {
  counters_.refused_connections.fetch_add(1, std::memory_order_relaxed);
  const auto now = steady_clock::now();
  if (now - last_log_ < std::chrono::seconds(1)) {
    ++unlogged_;
    return;
  }
  last_log_ = now;
  const std::string more =
      unlogged_ == 0 ? "" : " (and " + std::to_string(unlogged_) + " others before)";
  unlogged_ = 0;
  LogWarning("refused a connection from " + address + ": it " + why + more);
}

void Acceptor::Forget(PendingHandshake* pending) {
  const auto it = std::find_if(pending_.begin(), pending_.end(),
                               [&](const auto& p) { return p.get() == pending; });
  if (it != pending_.end()) pending_.erase(it);
}

}  // namespace hipress
