#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace hipress {
namespace {

/// \return 0 or errno
int WriteAll(int file, const std::string& content) {
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t written = ::write(file, content.data() + done, content.size() - done);
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) done += size_t(written);
  }
  return 0;
}

/// `mode`: of a file that is made, if it is to have another than the umask gives.
/// \return 0 or errno
int WriteNew(const std::string& path, const std::string& content, int flags, const mode_t* mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  if (file < 0) return errno;
  int why = 0;
  if (mode != nullptr && ::fchmod(file, *mode) != 0) why = errno;
  if (why == 0) why = WriteAll(file, content);
  if (why == 0 && (flags & O_CREAT) != 0 && ::fsync(file) != 0) why = errno;
  if (::close(file) != 0 && why == 0) why = errno;
  return why;
}

/// Waits until a folder's list of names is on the disk.
/// \return 0 or errno
int SyncFolder(const std::string& path) {
  const int folder = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno;
  const int why = ::fsync(folder) != 0 ? errno : 0;
  ::close(folder);
  return why;
}

}  // namespace

std::string ReplaceFile(const std::string& path, const std::string& content) {
  struct stat status;
  const bool exists = ::stat(path.c_str(), &status) == 0;
  int why = 0;
  if (exists && !S_ISREG(status.st_mode)) {
    why = WriteNew(path, content, 0, nullptr);
  } else {
    // A link stays a link, and what it names is replaced.
    std::error_code error;
    std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
    if (error) target = path;
    const mode_t mode = exists ? status.st_mode & 07777 : 0;
    // A process that was killed may have left a partial file of any name: in containers every run
    // has the same process ids.
    std::string partial;
    for (int number = 0; number == 0 || why == EEXIST; ++number) {
      partial = target.string() + "." + std::to_string(::getpid()) + "." + std::to_string(number) +
                ".partial";
      why = WriteNew(partial, content, O_CREAT | O_EXCL, exists ? &mode : nullptr);
    }
    if (why == 0 && std::rename(partial.c_str(), target.c_str()) != 0) why = errno;
    if (why != 0) {
      ::unlink(partial.c_str());
    } else {
      why = SyncFolder(target.parent_path());
    }
  }
  return why == 0 ? "" : std::strerror(why);
}

}  // namespace hipress
