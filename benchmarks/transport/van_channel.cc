// HiPress's TCP van between two processes, used as the store uses it: asynchronous sends with a
// bound on unfinished ones, and payloads received into buffers that the receiver provides.
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <ctime>
#include <mutex>
#include <thread>

#include "channel.h"
#include "transport/van.h"

namespace hipress {
namespace bench {
namespace {

VanOptions Options(Lane lane) {
  VanOptions options;
  options.secret = "benchmark";
  options.tls = lane == Lane::kTls ? "on" : "off";
  options.shared_memory = lane == Lane::kShared;
  return options;
}

/// header.elements: messages until a confirmation is due; header.step: 1 wants an echo.
class Receiver final : public VanReceiver {
 public:
  Buffer OnHeader(NodeId, const MessageHeader& header) override {
    if (!ring_ || ring_size_ != header.payload_bytes) {
      ring_ = std::make_unique<Ring>(header.payload_bytes);
      ring_size_ = header.payload_bytes;
    }
    return Buffer::Unowned(ring_->Next(), ring_size_);
  }
  void OnMessage(NodeId from, Message message) override {
    if (message.header.step == 0) {
      if (++received_ < message.header.elements) return;
      message.header.payload_bytes = 0;
      message.payload = Buffer();
    }
    received_ = 0;
    van->Send(from, std::move(message));
  }
  void OnDown(NodeId, bool, const std::string&) override { _exit(0); }

  Van* van = nullptr;

 private:
  std::unique_ptr<Ring> ring_;
  size_t ring_size_ = 0, received_ = 0;
};

class Sender final : public VanReceiver {
 public:
  Buffer OnHeader(NodeId, const MessageHeader&) override { return Buffer(); }
  void OnMessage(NodeId, Message) override {
    std::lock_guard<std::mutex> lock(mutex_);
    ++answers_;
    changed_.notify_one();
  }
  void OnDown(NodeId, bool, const std::string&) override {}

  void Await(size_t answers) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return answers_ >= answers; });
  }
  void Sent(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    pending_ -= bytes;
    if (pending_ <= kResume) changed_.notify_one();
  }
  void Enter(size_t bytes) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (pending_ > kLimit) changed_.wait(lock, [&] { return pending_ <= kResume; });
    pending_ += bytes;
  }

 private:
  static constexpr size_t kLimit = 8 << 20, kResume = 4 << 20;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t answers_ = 0, pending_ = 0;
};

class VanChannel final : public Channel {
 public:
  explicit VanChannel(Lane lane) {
    int pipe_fds[2];
    if (pipe(pipe_fds) != 0) throw Error("no pipe");
    child_ = fork();
    if (child_ == 0) {
      Receiver receiver;
      const auto van = MakeTcpVan(Options(lane));
      receiver.van = van.get();
      const std::string address = van->Start(Server(0), "127.0.0.1", 0, &receiver) + "\n";
      if (write(pipe_fds[1], address.data(), address.size()) < 0) _exit(1);
      for (;;) pause();
    }
    std::string address;
    char c;
    while (read(pipe_fds[0], &c, 1) == 1 && c != '\n') address += c;
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    van_ = MakeTcpVan(Options(lane));
    van_->Start(Worker(0), "127.0.0.1", 0, &sender_);
    van_->Connect(Server(0), address, std::chrono::steady_clock::now() + std::chrono::seconds(10));
    clock_getcpuclockid(child_, &clock_);
  }
  ~VanChannel() override {
    van_->Stop();
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  void Stream(size_t size, size_t count) override {
    Ring ring(size);
    // A completion callback per 64 KiB is enough to bound the unfinished sends.
    const size_t stride = std::max<size_t>(1, (64 << 10) / (size + 64));
    for (size_t i = 0; i < count; ++i) {
      Message message = Make(&ring, size, count, 0);
      if (i % stride != 0) {
        van_->Send(Server(0), std::move(message));
        continue;
      }
      const size_t bytes = stride * (size + 64);
      sender_.Enter(bytes);
      van_->Send(Server(0), std::move(message), 0, [this, bytes](bool) { sender_.Sent(bytes); });
    }
    sender_.Await(++asked_);
  }
  void PingPong(size_t size, size_t count) override {
    Ring ring(size);
    for (size_t i = 0; i < count; ++i) {
      van_->Send(Server(0), Make(&ring, size, 0, 1));
      sender_.Await(++asked_);
    }
  }
  double ReceiverCpu() const override {
    timespec time{};
    clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

 private:
  static Message Make(Ring* ring, size_t size, size_t count, uint16_t echo) {
    Message message(MessageKind::kData);
    message.header.elements = count;
    message.header.step = echo;
    message.payload = Buffer::Unowned(ring->Next(), size);
    return message;
  }

  pid_t child_ = 0;
  clockid_t clock_{};
  Sender sender_;
  std::shared_ptr<Van> van_;
  size_t asked_ = 0;
};

}  // namespace

std::unique_ptr<Channel> MakeVanChannel(Lane lane) { return std::make_unique<VanChannel>(lane); }

}  // namespace bench
}  // namespace hipress
