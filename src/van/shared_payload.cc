#include "van/shared_payload.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "van/socket.h"

namespace hipress {
namespace {

/// Bounds the memory that copies of users' arrays take.
constexpr uint64_t kMaxSharedBytes = uint64_t(256) << 20;

}  // namespace

std::shared_ptr<PeerArena> PeerArena::Open(const ArenaOffer& offer) {
  const std::string path =
      "/proc/" + std::to_string(offer.pid) + "/fd/" + std::to_string(offer.fd);
  // In another pid namespace this may be any file: look before opening it.
  char link[64] = {};
  const std::string prefix = Arena::kLinkPrefix;
  if (readlink(path.c_str(), link, sizeof(link) - 1) < 0) return nullptr;
  if (prefix.compare(0, prefix.size(), link, prefix.size()) != 0) return nullptr;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return nullptr;
  struct stat status{};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (fstat(fd.get(), &status) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0) return nullptr;
  if (uint64_t(status.st_size) != offer.size || offer.size < offer.nonce.size()) return nullptr;
  void* base = mmap(nullptr, offer.size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (base == MAP_FAILED) return nullptr;
  madvise(base, offer.size, MADV_DONTDUMP);
  madvise(base, offer.size, MADV_DONTFORK);
  std::shared_ptr<PeerArena> arena(new PeerArena(static_cast<uint8_t*>(base), offer.size));
  if (std::memcmp(base, offer.nonce.data(), offer.nonce.size()) != 0) return nullptr;
  return arena;
}

PeerArena::~PeerArena() { munmap(base_, size_); }

uint8_t* PeerArena::At(const SharedPayload& shared, uint64_t bytes) const {
  if (shared.offset > size_ || bytes > size_ - shared.offset) {
    throw ProtocolError("its payload lies outside of the memory that its sender shares");
  }
  return base_ + shared.offset;
}

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
  static std::mutex mutex;
  static auto* abandoned = new std::vector<std::shared_ptr<void>>;
  for (auto& entry : payloads_) {
    auto& [payload, done] = entry.second;
    {
      std::lock_guard<std::mutex> lock(mutex);
      abandoned->push_back(std::move(payload.owner));
    }
    if (done) done(graceful);
  }
  payloads_.clear();
}

}  // namespace hipress
