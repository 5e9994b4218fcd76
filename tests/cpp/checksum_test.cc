// The checksum: one value on every instruction set, and the choice of HIPRESS_SIMD.
#include "transport/checksum.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/simd.h"

namespace hipress {
namespace {

std::vector<const ChecksumKernel*> Supported() {
  std::vector<const ChecksumKernel*> kernels = {&kChecksumBaseline};
#if defined(__x86_64__)
  for (const ChecksumKernel* kernel : {&kChecksumAvx2, &kChecksumAvx512}) {
    if (SupportsSimd(kernel->name)) kernels.push_back(kernel);
  }
#endif
  return kernels;
}

TEST(Checksum, IsTheSameOnEveryInstructionSet) {
  std::vector<unsigned char> data(5000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 37 + i / 251);
  for (const size_t bytes : {0, 1, 63, 64, 240, 241, 1023, 1024, 1025, 4999}) {
    for (const ChecksumKernel* kernel : Supported()) {
      EXPECT_EQ(static_cast<uint32_t>(kernel->hash(data.data() + 1, bytes)),
                Checksum(data.data() + 1, bytes)) << kernel->name << ", " << bytes << " bytes";
    }
  }
}

TEST(Checksum, FollowsTheChosenInstructionSet) {
  for (const ChecksumKernel* kernel : Supported()) {
    // A process chooses once.
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(10);
      setenv("HIPRESS_SIMD", kernel->name, 1);
      execl("/proc/self/exe", "checksum_test", "--chosen", static_cast<char*>(nullptr));
      _exit(127);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << kernel->name;
  }
}

}  // namespace
}  // namespace hipress

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--chosen") == 0) {
    return std::strcmp(hipress::ChecksumSimd(), std::getenv("HIPRESS_SIMD")) == 0 ? 0 : 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
