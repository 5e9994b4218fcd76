#include <climits>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "common/log.h"
#include "common/thread_name.h"
#include "van/framing.h"
#include "van/send_queue.h"
#include "van/socket.h"
#include "van/van.h"

namespace hipress {

class InProcessCore;

/// Who listens where.
class InProcessNetwork {
 public:
  std::string Listen(const std::string& host, int port, const std::shared_ptr<InProcessCore>& core) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (port == 0) port = next_port_++;
    const std::string address = (host.empty() ? "in-process" : host) + ":" + std::to_string(port);
    if (!listeners_[address].expired()) {
      throw Error("port " + std::to_string(port) + " on " + host + " is in use in this network");
    }
    listeners_[address] = core;
    return address;
  }
  std::shared_ptr<InProcessCore> Find(const std::string& address) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = listeners_.find(address);
    return it == listeners_.end() ? nullptr : it->second.lock();
  }
  void Forget(const std::string& address) {
    std::lock_guard<std::mutex> lock(mutex_);
    listeners_.erase(address);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<InProcessCore>> listeners_;
  int next_port_ = 1;
};

namespace {

/// One side of a connection.
struct Link {
  std::weak_ptr<InProcessCore> remote;
  std::weak_ptr<Link> mirror;  ///< the same connection, seen from the other side
  NodeId peer;                 ///< on the van's thread
  bool open = true;            ///< on the van's thread
  // Guarded by the core's mutex
  SendQueue queue;
  bool pumping = false;
  bool closed = false;
};
using LinkPtr = std::shared_ptr<Link>;

/// Goodbye waits for everything.
constexpr int kGoodbyePriority = INT_MIN;

}  // namespace

class InProcessCore : public std::enable_shared_from_this<InProcessCore> {
 public:
  explicit InProcessCore(VanOptions options) : options_(std::move(options)) {}

  void Start(NodeId self, VanReceiver* receiver) {
    receiver_ = receiver;
    self_ = self.Packed();
    thread_ = std::thread([this] {
      NameThisThread("hipress-van");
      Run();
    });
  }

  /// Runs `call` on the van's thread. \return false once the thread is at its end
  bool Post(std::function<void()> call) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return false;
    calls_.push_back(std::move(call));
    changed_.notify_all();
    return true;
  }

  /// Runs `call` on the van's thread and waits for it, though not for ever.
  bool Call(std::function<bool()> call) {
    struct Answer {
      std::mutex mutex;
      std::condition_variable changed;
      bool here = false, value = false;
    };
    const auto answer = std::make_shared<Answer>();
    const bool posted = Post([answer, call = std::move(call)] {
      const bool value = call();
      std::lock_guard<std::mutex> lock(answer->mutex);
      answer->value = value;
      answer->here = true;
      answer->changed.notify_all();
    });
    std::unique_lock<std::mutex> lock(answer->mutex);
    return posted && answer->changed.wait_for(lock, std::chrono::seconds(5),
                                              [&] { return answer->here; }) && answer->value;
  }

  bool Admits(NodeId peer) {
    std::lock_guard<std::mutex> lock(mutex_);
    return links_.count(peer) == 0;
  }

  /// On the van's thread.
  bool Add(const LinkPtr& link) {
    if (stopping_) return false;
    if (link->peer.rank == kUnnamedRank) link->peer.rank = provisional_++;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!links_.emplace(link->peer, link).second) return false;
    }
    receiver_->OnUp(link->peer);
    return true;
  }

  void RenamePeer(NodeId from, NodeId to) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = links_.find(from);
    if (it == links_.end() || links_.count(to) != 0) return;
    const LinkPtr link = it->second;
    links_.erase(it);
    links_[to] = link;
    link->peer = to;
  }

  void Send(NodeId to, Message message, int priority, Van::SendDone done) {
    Seal(&message);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto it = links_.find(to);
      if (it != links_.end() && !it->second->closed) {
        return Enqueue(it->second, std::move(message), priority, std::move(done));
      }
    }
    if (done && !Post([done] { done(false); })) done(false);
  }

  /// On the van's thread: a message from the other side. \return false if it was not wanted
  bool Deliver(const LinkPtr& link, const Message& message) {
    if (!link->open) return false;
    const MessageHeader& header = message.header;
    if (header.kind == static_cast<uint16_t>(MessageKind::kGoodbye)) {
      Down(link, true, "left");
      return true;
    }
    const size_t bytes = sizeof(header) + header.payload_bytes;
    try {
      CheckHeader(header, options_.max_payload_bytes);
      Buffer payload = receiver_->OnHeader(link->peer, header);
      if (header.payload_bytes > 0) {
        if (!payload) payload = AllocateBuffer(header.payload_bytes);
        payload.size = header.payload_bytes;
        std::memcpy(payload.data, message.payload.data, header.payload_bytes);
      } else {
        payload = Buffer();
      }
      counters.messages_received += 1;
      counters.bytes_received += bytes;
      if (IsData(header)) counters.data_bytes_received += bytes;
      receiver_->OnMessage(link->peer, {header, std::move(payload), false});
      return true;
    } catch (const std::exception& error) {
      counters.refused_messages += 1;
      LogWarning("refused a message from " + link->peer.ToString() + " (in this process): " +
                 error.what() + "; the connection is closed");
      CloseMirror(link);
      Down(link, false, std::string("sent a message that was refused: ") + error.what());
      return false;
    }
  }

  /// On the van's thread. Idempotent.
  void Down(const LinkPtr& link, bool graceful, const std::string& reason) {
    if (!link->open) return;
    link->open = false;
    std::vector<Van::SendDone> unsent;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      link->closed = true;
      const auto it = links_.find(link->peer);
      if (it != links_.end() && it->second == link) links_.erase(it);
      while (SendItem* item = link->queue.Pop()) {
        if (item->done) unsent.push_back(std::move(item->done));
        delete item;
      }
      changed_.notify_all();
    }
    for (const auto& done : unsent) done(false);
    receiver_->OnDown(link->peer, graceful, reason);
  }

  void Stop(std::chrono::milliseconds linger, bool goodbye) {
    if (stopping_.exchange(true) || !thread_.joinable()) return;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (goodbye) {
        Message message;
        message.header.kind = static_cast<uint16_t>(MessageKind::kGoodbye);
        Seal(&message);
        for (const auto& entry : links_) Enqueue(entry.second, message, kGoodbyePriority, nullptr);
        changed_.wait_for(lock, linger, [&] { return links_.empty(); });
      }
    }
    Post([this] {
      for (const LinkPtr& link : Links()) {
        CloseMirror(link);
        Down(link, true, "was left by this node");
      }
      std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    });
    thread_.join();
  }

  const VanOptions& options() const { return options_; }
  NodeId self() const { return NodeId::Unpack(self_); }
  void Rename(NodeId self) { self_ = self.Packed(); }

  VanCounters counters;

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !calls_.empty() || ending_; });
      if (calls_.empty()) break;
      const std::function<void()> call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      call();
      lock.lock();
    }
    ended_ = true;
  }

  /// With the mutex held.
  void Enqueue(const LinkPtr& link, Message message, int priority, Van::SendDone done) {
    SendItem* item = link->queue.Make();
    item->message = std::move(message);
    item->done = std::move(done);
    link->queue.Push(item, priority);
    if (link->pumping) return;
    link->pumping = true;
    calls_.push_back([self = shared_from_this(), link] { self->Pump(link); });
    changed_.notify_all();
  }

  /// Hands one message to the other side; the next follows when that one has arrived.
  void Pump(const LinkPtr& link) {
    std::shared_ptr<SendItem> item;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      item.reset(link->queue.Pop());
      link->pumping = item != nullptr;
    }
    if (!item) return;
    const auto remote = link->remote.lock();
    const auto mirror = link->mirror.lock();
    const auto arrived = [self = shared_from_this(), link, item](bool sent) {
      self->Sent(link, item.get(), sent);
    };
    const bool posted = remote && mirror && remote->Post([remote, mirror, item, arrived,
                                                          self = shared_from_this()] {
      const bool sent = remote->Deliver(mirror, item->message);
      self->Post([arrived, sent] { arrived(sent); });
    });
    if (!posted) arrived(false);
  }

  void Sent(const LinkPtr& link, SendItem* item, bool sent) {
    const MessageHeader& header = item->message.header;
    item->message.payload = Buffer();
    const bool goodbye = header.kind == static_cast<uint16_t>(MessageKind::kGoodbye);
    if (sent && !goodbye) {
      const size_t bytes = sizeof(header) + header.payload_bytes;
      counters.messages_sent += 1;
      counters.bytes_sent += bytes;
      if (IsData(header)) counters.data_bytes_sent += bytes;
    }
    if (item->done) std::exchange(item->done, nullptr)(sent);
    if (goodbye) return Down(link, true, "was left by this node");
    if (link->open) Pump(link);
  }

  /// Tells the other side that this one has closed without goodbye.
  void CloseMirror(const LinkPtr& link) {
    const auto remote = link->remote.lock();
    const auto mirror = link->mirror.lock();
    if (!link->open || !remote || !mirror) return;
    remote->Post([remote, mirror] {
      remote->Down(mirror, false, "closed the connection without saying goodbye");
    });
  }

  std::vector<LinkPtr> Links() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<LinkPtr> links;
    for (const auto& entry : links_) links.push_back(entry.second);
    return links;
  }

  const VanOptions options_;
  VanReceiver* receiver_ = nullptr;
  std::atomic<uint32_t> self_{0};
  std::atomic<bool> stopping_{false};
  uint16_t provisional_ = kFirstProvisionalRank;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;
  bool ending_ = false, ended_ = false;
  std::unordered_map<NodeId, LinkPtr> links_;
  std::thread thread_;
};

namespace {

class InProcessVan final : public Van {
 public:
  InProcessVan(std::shared_ptr<InProcessNetwork> network, VanOptions options)
      : network_(std::move(network)), core_(std::make_shared<InProcessCore>(std::move(options))) {}
  ~InProcessVan() override { Stop(std::chrono::milliseconds(2000)); }

  std::string Start(NodeId self, const std::string& host, int port, VanReceiver* receiver) override {
    address_ = network_->Listen(host, port, core_);
    core_->Start(self, receiver);
    return address_;
  }
  void Rename(NodeId self) override { core_->Rename(self); }
  void RenamePeer(NodeId from, NodeId to) override { core_->RenamePeer(from, to); }

  void Connect(NodeId peer, const std::string& address, SteadyTime deadline) override {
    const auto fail = [&](const std::string& why) {
      throw Error("cannot connect to " + peer.ToString() + " at " + address + ": " + why);
    };
    std::shared_ptr<InProcessCore> remote;
    while (!(remote = network_->Find(address))) {
      if (std::chrono::steady_clock::now() > deadline) fail("nothing listens there");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (remote->options().secret != core_->options().secret) {
      remote->counters.refused_connections += 1;
      fail("it has another job secret; set HIPRESS_SECRET to the same value on all nodes");
    }
    const auto here = std::make_shared<Link>();
    const auto there = std::make_shared<Link>();
    here->remote = remote;
    here->mirror = there;
    here->peer = peer;
    there->remote = core_;
    there->mirror = here;
    there->peer = core_->self();
    const NodeId self = core_->self();
    if (!remote->Call([remote, self] { return remote->Admits(self); })) {
      fail("it is already connected to a node that calls itself " + self.ToString());
    }
    if (!core_->Call([core = core_, here] { return core->Add(here); })) {
      fail("a connection with it exists already");
    }
    if (remote->Call([remote, there] { return remote->Add(there); })) return;
    core_->Call([core = core_, here] {
      core->Down(here, false, "refused the connection");
      return true;
    });
    fail("it refused the connection");
  }

  void Send(NodeId to, Message message, int priority, SendDone done) override {
    core_->Send(to, std::move(message), priority, std::move(done));
  }
  const VanCounters& counters() const override { return core_->counters; }
  void Stop(std::chrono::milliseconds linger) override {
    network_->Forget(address_);
    core_->Stop(linger, true);
  }
  void Abort(std::chrono::milliseconds) override {
    network_->Forget(address_);
    core_->Stop(std::chrono::milliseconds(0), false);
  }

 private:
  const std::shared_ptr<InProcessNetwork> network_;
  const std::shared_ptr<InProcessCore> core_;
  std::string address_;
};

}  // namespace

std::shared_ptr<InProcessNetwork> MakeInProcessNetwork() {
  return std::make_shared<InProcessNetwork>();
}

std::unique_ptr<Van> MakeInProcessVan(std::shared_ptr<InProcessNetwork> network, VanOptions options) {
  return std::make_unique<InProcessVan>(std::move(network), std::move(options));
}

}  // namespace hipress
