// Messages of a listener to a caller, before the expected ones and instead of them.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "transport/handshake.h"

using namespace hipress;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size >= sizeof(Hello)) {
    Hello hello;
    std::memcpy(&hello, data, sizeof(hello));
    CheckHello(hello);
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 0;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  size_t sent = 0;
  while (sent < size && sent < 4096) {
    const ssize_t n = write(ends[1], data + sent, size - sent);
    if (n <= 0) break;
    sent += size_t(n);
  }
  shutdown(ends[1], SHUT_WR);
  try {
    CallerHandshake(ends[0], "a secret of the job", Worker(0), Server(0), false,
                    std::chrono::steady_clock::now() + std::chrono::milliseconds(200));
    std::abort();  // the listener's proof cannot be guessed
  } catch (const Error&) {
  }
  close(ends[0]);
  close(ends[1]);
  return 0;
}

std::vector<std::string> Seeds() {
  const Hello hello = MakeHello(Server(0), Worker(0), false);
  Verdict verdict{uint8_t(VerdictCode::kWrongSecret), {}};
  return {BytesOf(hello) + BytesOf(verdict), BytesOf(hello)};
}
