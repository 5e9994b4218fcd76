#include "base/file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace hipress {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  FileTest()
      : folder_(fs::path(::testing::TempDir()) / ("file_test" + std::to_string(::getpid()))) {
    fs::create_directory(folder_);
  }
  ~FileTest() override { fs::remove_all(folder_); }

  std::string Content(const fs::path& path) const {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  size_t Entries() const {
    return size_t(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(FileTest, Replaces) {
  const fs::path path = folder_ / "timeline";
  EXPECT_EQ(ReplaceFile(path, "old"), "");
  EXPECT_EQ(ReplaceFile(path, "new"), "");
  EXPECT_EQ(Content(path), "new");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(FileTest, ALinkStaysAndTheModeToo) {
  const fs::path path = folder_ / "timeline", link = folder_ / "link";
  ASSERT_EQ(ReplaceFile(path, "old"), "");
  fs::permissions(path, fs::perms(0640));
  fs::create_symlink("timeline", link);
  EXPECT_EQ(ReplaceFile(link, "new"), "");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(Content(path), "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
  EXPECT_EQ(Entries(), 2u);
}

TEST_F(FileTest, WhatAKilledProcessOfTheSameIdHasLeftIsNoHindrance) {
  const fs::path path = folder_ / "timeline";
  const fs::path left = path.string() + "." + std::to_string(::getpid()) + ".0.partial";
  std::ofstream(left) << "half";
  EXPECT_EQ(ReplaceFile(path, "new"), "");
  EXPECT_EQ(Content(path), "new");
  EXPECT_EQ(Content(left), "half");
}

TEST_F(FileTest, SaysWhyNot) {
  EXPECT_EQ(ReplaceFile(folder_ / "no" / "timeline", "new"), "No such file or directory");
  EXPECT_EQ(ReplaceFile("/dev/null", "new"), "");
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(FileTest, AFullDiskLeavesTheOldContent) {
  const fs::path path = folder_ / "timeline";
  ASSERT_EQ(ReplaceFile(path, "old"), "");
  // No file can grow beyond this, which is what a full disk is like.
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string why = ReplaceFile(path, std::string(100000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(why, "File too large");
  EXPECT_EQ(Content(path), "old");
  EXPECT_EQ(Entries(), 1u);
}

}  // namespace
}  // namespace hipress
