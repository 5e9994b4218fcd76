// What a connection asks the kernel for.
#include <netinet/tcp.h>

#include "van_testing.h"

namespace hipress::testing {
namespace {

std::string CongestionControl(int fd) {
  char name[16] = "";
  socklen_t size = sizeof(name);
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
  return name;
}

class ShortLink : public ::testing::Test {
 protected:
  void SetUp() override {
    int error = 0;
    listener_ = Listen(Resolve("127.0.0.1", 0));
    socket_ = ConnectOnce(LocalAddress(listener_.get()), Deadline{In(seconds(5))}, &error);
    ASSERT_EQ(error, 0);
  }
  /// What is used in the end where the kernel would use this; empty if it may not.
  std::string InPlaceOf(const std::string& usual) {
    if (setsockopt(socket_.get(), IPPROTO_TCP, TCP_CONGESTION, usual.data(), socklen_t(usual.size())) != 0) {
      return "";
    }
    Tune(socket_.get(), seconds(5));
    return CongestionControl(socket_.get());
  }
  UniqueFd listener_, socket_;
};

TEST_F(ShortLink, DoesWithoutBbrWhichSharesItUnevenly) {
  const std::string used = InPlaceOf("bbr");
  if (used.empty()) GTEST_SKIP() << "this kernel has no BBR, or allows root alone to use it";
  EXPECT_TRUE(used == "cubic" || used == "reno") << used;
}

TEST_F(ShortLink, UsesWhatItIsTold) {
  Tune(socket_.get(), seconds(5), "reno");
  EXPECT_EQ(CongestionControl(socket_.get()), "reno");
  CheckCongestionControl("reno");
  EXPECT_HAS(ErrorOf([] { CheckCongestionControl("nope"); }),
             "HIPRESS_CONGESTION_CONTROL is 'nope', but this kernel allows ");
}

TEST_F(ShortLink, KeepsWhatElseTheSystemUses) { EXPECT_EQ(InPlaceOf("reno"), "reno"); }

}  // namespace
}  // namespace hipress::testing
