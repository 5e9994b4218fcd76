// How soon a van detects a failed peer (killed, stopped, cut off), and what does not count as a
// failure.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>

#include "raw_client.h"
#include "transport/message.h"
#include "van_testing.h"

namespace hipress::testing {
namespace {

/// A separate process that runs `body` and sends lines of text to its parent.
class Process {
 public:
  explicit Process(const std::function<void(Process*)>& body) {
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) throw Error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      from_child_ = UniqueFd(pipe_fds[1]);
      close(pipe_fds[0]);
      alarm(60);  // never outlives its test by much
      body(this);
      _exit(0);
    }
    from_child_ = UniqueFd(pipe_fds[0]);
    close(pipe_fds[1]);
  }
  ~Process() { Kill(SIGKILL); }
  void Kill(int signal) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    if (signal != SIGKILL) return;
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  /// In the child.
  void Tell(const std::string& line) {
    const std::string text = line + "\n";
    if (write(from_child_.get(), text.data(), text.size()) < 0) _exit(1);
  }
  /// In the parent: the next line, empty when none comes.
  std::string Listen(milliseconds limit = seconds(10)) {
    const auto deadline = In(limit);
    std::string line;
    char c;
    while (WaitFor(from_child_.get(), true, deadline) && read(from_child_.get(), &c, 1) == 1) {
      if (c == '\n') return line;
      line += c;
    }
    return line;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  UniqueFd from_child_;
};

/// A server that echoes until it is killed; sends its address first.
void EchoServer(Process* process, const std::string& host, const VanOptions& options) {
  Recorder receiver;
  const auto van = MakeTcpVan(options);
  receiver.on_message = [&](NodeId from, const Message& message) { van->Send(from, message); };
  process->Tell(van->Start(Server(0), host, 0, &receiver));
  std::this_thread::sleep_for(seconds(60));
}

double SecondsSince(SteadyTime begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

class FailureTest : public ::testing::Test {
 protected:
  /// Connects to the echo server in `process` and exchanges a message.
  /// \param patient without taking silence for a death
  void ConnectTo(Process* process, bool patient = false) {
    const std::string address = process->Listen();
    VanOptions options = TestVanOptions();
    if (patient) options.heartbeat_timeout = seconds(30);
    van_ = MakeTcpVan(options);
    van_->Start(Worker(0), "127.0.0.1", 0, &receiver_);
    van_->Connect(Server(0), address, In(seconds(5)));
    van_->Send(Server(0), Text(MessageKind::kData, "ping"));
    ASSERT_TRUE(receiver_.AwaitMessages(1));
  }

  Recorder receiver_;
  std::shared_ptr<Van> van_;
};

TEST_F(FailureTest, KilledProcessIsNoticedAtOnce) {
  Process server([](Process* p) { EchoServer(p, "127.0.0.1", TestVanOptions()); });
  ConnectTo(&server, true);
  const auto begin = steady_clock::now();
  server.Kill(SIGKILL);
  ASSERT_TRUE(receiver_.AwaitDowns(1));
  EXPECT_LT(SecondsSince(begin), 5);
  EXPECT_FALSE(receiver_.downs[0].graceful);
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(receiver_.downs.size(), 1u);
}

TEST_F(FailureTest, StoppedProcessIsNoticedByItsSilence) {
  Process server([](Process* p) { EchoServer(p, "127.0.0.1", TestVanOptions()); });
  ConnectTo(&server);
  const auto begin = steady_clock::now();
  server.Kill(SIGSTOP);
  ASSERT_TRUE(receiver_.AwaitDowns(1));
  EXPECT_GT(SecondsSince(begin), 1.0);
  EXPECT_LT(SecondsSince(begin), 8);  // the timeout is 1.5 s
  EXPECT_HAS(receiver_.downs[0].reason, "has been silent for ");
}

TEST_F(FailureTest, AStoppedProcessThatGoesOnDoesNotBlameItsPeers) {
  VanOptions patient = TestVanOptions();
  patient.heartbeat_timeout = seconds(60);
  Process node([&](Process* p) {
    Recorder receiver;
    const auto van = MakeTcpVan(TestVanOptions());
    p->Tell(van->Start(Server(0), "127.0.0.1", 0, &receiver));
    receiver.AwaitMessages(1);
    p->Tell("ready");
    receiver.AwaitMessages(2, seconds(20));
    p->Tell(receiver.downs.empty() ? "all well" : "lost: " + receiver.downs[0].reason);
  });
  const std::string address = node.Listen();
  van_ = MakeTcpVan(patient);
  van_->Start(Worker(0), "127.0.0.1", 0, &receiver_);
  van_->Connect(Server(0), address, In(seconds(5)));
  van_->Send(Server(0), Text(MessageKind::kData, "one"));
  EXPECT_EQ(node.Listen(), "ready");
  node.Kill(SIGSTOP);
  std::this_thread::sleep_for(milliseconds(2500));
  node.Kill(SIGCONT);
  std::this_thread::sleep_for(milliseconds(700));
  van_->Send(Server(0), Text(MessageKind::kData, "two"));
  EXPECT_EQ(node.Listen(), "all well");
}

TEST_F(FailureTest, AForkedChildNeitherDisturbsNorHidesItsParent) {
  Process server([](Process* p) {
    Recorder receiver;
    auto van = MakeTcpVan(TestVanOptions());
    receiver.on_message = [&](NodeId from, const Message& message) { van->Send(from, message); };
    p->Tell(van->Start(Server(0), "127.0.0.1", 0, &receiver));
    receiver.AwaitMessages(1);
    const pid_t first = fork();
    if (first == 0) {  // as a data loader's process ends: destructors run
      van->Stop(seconds(1));
      van.reset();
      _exit(0);
    }
    waitpid(first, nullptr, 0);
    const pid_t second = fork();
    if (second == 0) {
      alarm(20);
      pause();
      _exit(0);
    }
    p->Tell(std::to_string(second));
    std::this_thread::sleep_for(seconds(60));
  });
  ConnectTo(&server, true);
  const pid_t grandchild = std::stoi(server.Listen());
  // The first child's end has harmed nothing.
  van_->Send(Server(0), Text(MessageKind::kData, "ping"));
  ASSERT_TRUE(receiver_.AwaitMessages(2));
  ASSERT_FALSE(receiver_.AwaitDowns(1, milliseconds(0)));
  const auto begin = steady_clock::now();
  server.Kill(SIGKILL);
  EXPECT_TRUE(receiver_.AwaitDowns(1));
  EXPECT_LT(SecondsSince(begin), 5);
  EXPECT_EQ(kill(grandchild, SIGKILL), 0) << "the forked child should still have been alive";
}

TEST_F(FailureTest, AStartedProgramInheritsNoSocket) {
  Process server([](Process* p) { EchoServer(p, "127.0.0.1", TestVanOptions()); });
  ConnectTo(&server);
  FILE* list = popen("ls -l /proc/self/fd", "r");
  std::string text;
  char chunk[512];
  while (fgets(chunk, sizeof(chunk), list) != nullptr) text += chunk;
  pclose(list);
  EXPECT_HAS(text, "pipe:");
  for (const char* kind : {"socket:", "eventpoll", "timerfd", "eventfd"}) {
    EXPECT_EQ(text.find(kind), std::string::npos) << text;
  }
}

TEST_F(FailureTest, SlowBytesAreASignOfLifeAndSilenceIsNot) {
  van_ = MakeTcpVan(TestVanOptions());
  const auto [host, port] = SplitAddress(van_->Start(Server(0), "127.0.0.1", 0, &receiver_));
  int error = 0;
  const UniqueFd fd = ConnectOnce(Resolve(host, port), In(seconds(5)), &error);
  CallerHandshake(fd.get(), TestVanOptions().secret, Worker(0), Server(0), false, In(seconds(5)));
  Message message = Text(MessageKind::kData, std::string(2000, 's'));
  Seal(&message);
  std::string bytes(reinterpret_cast<const char*>(&message.header), sizeof(message.header));
  bytes += TextIn(message);
  for (int i = 0; i < 10; ++i) {  // 2.5 s in all, a piece every 250 ms
    const size_t piece = bytes.size() / 10 + (i == 9 ? bytes.size() % 10 : 0);
    ASSERT_EQ(send(fd.get(), bytes.data() + i * (bytes.size() / 10), piece, MSG_NOSIGNAL), ssize_t(piece));
    std::this_thread::sleep_for(milliseconds(250));
  }
  ASSERT_TRUE(receiver_.AwaitMessages(1));
  EXPECT_TRUE(receiver_.downs.empty());
  const auto begin = steady_clock::now();
  ASSERT_TRUE(receiver_.AwaitDowns(1));
  EXPECT_LT(SecondsSince(begin), 8);
  EXPECT_HAS(receiver_.downs[0].reason, "has been silent");
}

TEST_F(FailureTest, IdleConnectionsStayUp) {
  Process server([](Process* p) { EchoServer(p, "127.0.0.1", TestVanOptions()); });
  ConnectTo(&server);
  std::this_thread::sleep_for(milliseconds(3500));
  EXPECT_TRUE(receiver_.downs.empty());
  van_->Send(Server(0), Text(MessageKind::kData, "ping"));
  EXPECT_TRUE(receiver_.AwaitMessages(2));
}

// ---- a network of our own

/// Two namespaces joined by a cable; removed at the end.
class Cable {
 public:
  Cable() {
    const std::string id = std::to_string(getpid() % 10000);
    a_ = "hpa" + id;
    b_ = "hpb" + id;
    const std::string in_a = "ip -n " + a_ + " ", in_b = "ip -n " + b_ + " ";
    ok_ = geteuid() == 0 && Run("ip netns add " + a_) && Run("ip netns add " + b_) &&
          Run("ip link add " + a_ + " netns " + a_ + " type veth peer name " + b_ + " netns " + b_) &&
          Run(in_a + "addr add 10.213.7.1/24 dev " + a_) && Run(in_b + "addr add 10.213.7.2/24 dev " + b_) &&
          Run(in_a + "link set lo up") && Run(in_b + "link set lo up") &&
          Run(in_a + "link set " + a_ + " up") && Run(in_b + "link set " + b_ + " up");
  }
  ~Cable() {
    Run("ip netns del " + a_);
    Run("ip netns del " + b_);
  }
  bool ok() const { return ok_; }
  void Cut() { Run("ip -n " + b_ + " link set " + b_ + " down"); }
  /// Moves the calling thread, and those it starts, into a namespace.
  void Enter(bool a) const {
    const UniqueFd fd(open(("/var/run/netns/" + (a ? a_ : b_)).c_str(), O_RDONLY | O_CLOEXEC));
    if (setns(fd.get(), CLONE_NEWNET) != 0) throw Error("cannot enter a network namespace");
  }

 private:
  static bool Run(const std::string& command) { return system((command + " 2>/dev/null").c_str()) == 0; }
  std::string a_, b_;
  bool ok_ = false;
};

TEST(Cable, ACutIsNoticedWithTlsOnByDefault) {
  Cable cable;
  if (!cable.ok()) GTEST_SKIP() << "making network namespaces needs root and iproute2";
  Process server([&](Process* p) {
    cable.Enter(false);
    EchoServer(p, "10.213.7.2", TestVanOptions());
  });
  const std::string address = server.Listen();
  ASSERT_EQ(address.rfind("10.213.7.2:", 0), 0u);
  Recorder receiver;
  std::thread in_namespace([&] {
    cable.Enter(true);
    EXPECT_EQ(AddressTowards("10.213.7.2"), "10.213.7.1");
    const auto van = MakeTcpVan(TestVanOptions());
    van->Start(Worker(0), "10.213.7.1", 0, &receiver);
    van->Connect(Server(0), address, In(seconds(5)));
    van->Send(Server(0), Text(MessageKind::kData, "ping"));
    EXPECT_TRUE(receiver.AwaitMessages(1));
    // An end without TLS is refused: it is on here because the addresses are no loopback ones.
    VanOptions plain = TestVanOptions();
    plain.tls = "off";
    Recorder at_plain;
    const auto other = MakeTcpVan(plain);
    other->Start(Worker(1), "10.213.7.1", 0, &at_plain);
    EXPECT_HAS(ErrorOf([&] { other->Connect(Server(0), address, In(seconds(2))); }),
               "this end does not want TLS and the other does");
    const auto begin = steady_clock::now();
    cable.Cut();
    van->Send(Server(0), Text(MessageKind::kData, std::string(1 << 20, 'x')));
    EXPECT_TRUE(receiver.AwaitDowns(1));
    EXPECT_LT(SecondsSince(begin), 3.5);
    EXPECT_HAS(receiver.downs[0].reason, "has been silent");
    EXPECT_HAS(ErrorOf([&] { van->Connect(Server(1), "10.213.7.9:5000", In(milliseconds(300))); }),
               "cannot connect to server 1 at 10.213.7.9:5000: ");
    EXPECT_HAS(ErrorOf([&] { AddressTowards("203.0.113.5"); }), "there is no route to 203.0.113.5");
  });
  in_namespace.join();
}

}  // namespace
}  // namespace hipress::testing
