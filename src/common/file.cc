#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

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

/// \return 0 or errno
int WriteNew(const std::string& path, const std::string& content, int flags, bool sync) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  if (file < 0) return errno;
  int why = WriteAll(file, content);
  if (why == 0 && sync && ::fsync(file) != 0) why = errno;
  if (::close(file) != 0 && why == 0) why = errno;
  return why;
}

}  // namespace

std::string ReplaceFile(const std::string& path, const std::string& content) {
  struct stat found;
  int why = 0;
  if (::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
    why = WriteNew(path, content, 0, false);
  } else {
    const std::string partial = path + "." + std::to_string(::getpid()) + ".partial";
    why = WriteNew(partial, content, O_CREAT | O_EXCL, true);
    if (why == 0 && std::rename(partial.c_str(), path.c_str()) != 0) why = errno;
    if (why != 0 && why != EEXIST) ::unlink(partial.c_str());
  }
  return why == 0 ? "" : std::strerror(why);
}

}  // namespace hipress
