#include "transport/shared_payload.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

namespace hipress {
namespace {

/// Bounds the memory that copies of users' arrays take.
constexpr uint64_t kMaxSharedBytes = uint64_t(256) << 20;

/// Lock of a byte, as fcntl's "open file description locks" need it.
struct flock LockOf(short type, uint64_t byte) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return lock;
}

bool IsRead(const Arena& arena, uint64_t reader) {
  struct flock lock = LockOf(F_WRLCK, reader);
  return fcntl(arena.fd(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/// What connections that are gone have lent.
struct Abandoned {
  struct Lent {
    uint64_t reader;
    std::shared_ptr<void> owner;
  };
  std::mutex mutex;
  std::vector<Lent> all;
  static Abandoned& Get() {
    static auto* abandoned = new Abandoned;
    return *abandoned;
  }
};

}  // namespace

std::shared_ptr<PeerArena> PeerArena::Open(const ArenaOffer& offer) {
  const std::string path =
      "/proc/" + std::to_string(offer.pid) + "/fd/" + std::to_string(offer.fd);
  // In another pid namespace this may be any file: look before opening it.
  char link[64] = {};
  const std::string prefix = Arena::kLinkPrefix;
  if (readlink(path.c_str(), link, sizeof(link) - 1) < 0) return nullptr;
  if (prefix.compare(0, prefix.size(), link, prefix.size()) != 0) return nullptr;
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return nullptr;
  struct stat status{};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (fstat(fd.get(), &status) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0) return nullptr;
  if (uint64_t(status.st_size) != offer.size || offer.size < offer.nonce.size()) return nullptr;
  struct flock lock = LockOf(F_RDLCK, offer.reader);
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) return nullptr;
  void* base = mmap(nullptr, offer.size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (base == MAP_FAILED) return nullptr;
  madvise(base, offer.size, MADV_DONTDUMP);
  madvise(base, offer.size, MADV_DONTFORK);
  std::shared_ptr<PeerArena> arena(new PeerArena(std::move(fd), static_cast<uint8_t*>(base), offer.size));
  if (std::memcmp(base, offer.nonce.data(), offer.nonce.size()) != 0) return nullptr;
  return arena;
}

PeerArena::PeerArena(UniqueFd fd, uint8_t* base, uint64_t size)
    : fd_(std::move(fd)), base_(base), size_(size) {
  CloseInForkedChildren(fd_.get());
}

PeerArena::~PeerArena() {
  munmap(base_, size_);
  ForgetInForkedChildren(fd_.get());
}

uint8_t* PeerArena::At(const SharedPayload& shared, uint64_t bytes) const {
  if (shared.offset > size_ || bytes > size_ - shared.offset) {
    throw ProtocolError("its payload lies outside of the memory that its sender shares");
  }
  return base_ + shared.offset;
}

SharedPayloads::SharedPayloads() : reader_([] {
  static std::atomic<uint64_t> readers{0};
  return readers++;
}()) {}

SharedPayloads::Answer SharedPayloads::Prepare(Buffer* payload, SharedPayload* shared) {
  Arena* const arena = Arena::Get();
  if (arena == nullptr || bytes_ + payload->size > kMaxSharedBytes) return Answer::kNotShared;
  const bool copied = !arena->Contains(payload->data, payload->size);
  if (copied) {
    const Buffer copy = AllocateBuffer(payload->size);
    if (!arena->Contains(copy.data, copy.size)) return Answer::kNotShared;
    std::memcpy(copy.data, payload->data, payload->size);
    *payload = copy;
  }
  shared->offset = arena->OffsetOf(payload->data);
  return copied ? Answer::kCopied : Answer::kInPlace;
}

void SharedPayloads::Add(Buffer payload, Van::SendDone done) {
  bytes_ += payload.size;
  const uint64_t offset = Arena::Get()->OffsetOf(payload.data);
  payloads_.emplace(offset, std::make_pair(std::move(payload), std::move(done)));
}

void SharedPayloads::Release(const SharedPayload& shared) {
  const auto it = payloads_.find(shared.offset);
  if (it == payloads_.end()) throw ProtocolError("it releases a payload that is not shared");
  auto [payload, done] = std::move(it->second);
  payloads_.erase(it);
  bytes_ -= payload.size;
  payload = Buffer();  // as in Connection::Complete
  if (done) done(true);
}

void SharedPayloads::Abandon(bool graceful) {
  Abandoned& abandoned = Abandoned::Get();
  for (auto& entry : payloads_) {
    auto& [payload, done] = entry.second;
    {
      std::lock_guard<std::mutex> lock(abandoned.mutex);
      abandoned.all.push_back({reader_, std::move(payload.owner)});
    }
    if (done) done(graceful);
  }
  payloads_.clear();
  FreeAbandoned();
}

void SharedPayloads::FreeAbandoned() {
  std::vector<Abandoned::Lent> free;
  Abandoned& abandoned = Abandoned::Get();
  std::lock_guard<std::mutex> lock(abandoned.mutex);
  const Arena* const arena = Arena::Get();
  if (arena == nullptr || abandoned.all.empty()) return;
  const auto first = std::partition(abandoned.all.begin(), abandoned.all.end(),
                                    [&](const auto& lent) { return IsRead(*arena, lent.reader); });
  free.assign(std::make_move_iterator(first), std::make_move_iterator(abandoned.all.end()));
  abandoned.all.erase(first, abandoned.all.end());
}

}  // namespace hipress
