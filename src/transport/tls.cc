#include "transport/tls.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace hipress {
namespace {

constexpr size_t kInBytes = 256 << 10;
/// Bytes encrypted before the socket is tried: 15 full records, which fit the second-level cache.
constexpr size_t kPlainPerFlush = 15 << 14;
/// AES-GCM wears out after 2^24.5 records of one key (RFC 8446, 5.5); we change it long before.
constexpr uint64_t kBytesPerKey = uint64_t(64) << 30;

TlsStream* Of(const SSL* ssl) { return static_cast<TlsStream*>(SSL_get_app_data(ssl)); }

/// The identity is the same for everyone: the key differs with every connection.
constexpr char kIdentity[] = "hipress";

SSL_SESSION* SessionOf(SSL* ssl) {
  static const unsigned char kAes128GcmSha256[] = {0x13, 0x01};
  const Mac& key = Of(ssl)->key();
  SSL_SESSION* session = SSL_SESSION_new();
  if (session == nullptr || SSL_SESSION_set1_master_key(session, key.data(), key.size()) != 1 ||
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kAes128GcmSha256)) != 1 ||
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

int UseSession(SSL* ssl, const EVP_MD*, const unsigned char** id, size_t* size, SSL_SESSION** out) {
  *out = SessionOf(ssl);
  *id = reinterpret_cast<const unsigned char*>(kIdentity);
  *size = sizeof(kIdentity) - 1;
  return *out != nullptr;
}

int FindSession(SSL* ssl, const unsigned char* id, size_t size, SSL_SESSION** out) {
  const bool known = size == sizeof(kIdentity) - 1 && std::memcmp(id, kIdentity, size) == 0;
  *out = known ? SessionOf(ssl) : nullptr;
  return 1;
}

SSL_CTX* NewContext(bool caller) {
  SSL_CTX* context = SSL_CTX_new(caller ? TLS_client_method() : TLS_server_method());
  if (context == nullptr) throw Error("OpenSSL cannot make a TLS context");
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (caller) {
    // No certificate will come; one that did must not be accepted in place of the key.
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_psk_use_session_callback(context, UseSession);
  } else {
    SSL_CTX_set_psk_find_session_callback(context, FindSession);
  }
  return context;
}

SSL_CTX* Context(bool caller) {
  static SSL_CTX* const callers = NewContext(true);
  static SSL_CTX* const listeners = NewContext(false);
  return caller ? callers : listeners;
}

/// Nothing checks the dates, because a peer accepts the certificate by its digest.
constexpr long kSecondsBefore = 24 * 60 * 60;           // NOLINT
constexpr long kSecondsAfter = 10L * 365 * 24 * 60 * 60;  // NOLINT

template <auto function>
struct Free {
  template <typename T>
  void operator()(T* object) const { function(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Free<EVP_PKEY_CTX_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;

void Check(bool fine) {
  if (fine) return;
  ERR_clear_error();
  throw Error("OpenSSL cannot make a certificate");
}

Key MakeKey() {
  const KeyContext context(EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nullptr));
  EVP_PKEY* key = nullptr;
  Check(context != nullptr && EVP_PKEY_keygen_init(context.get()) == 1 &&
        EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context.get(), NID_X9_62_prime256v1) == 1 &&
        EVP_PKEY_CTX_set_ec_param_enc(context.get(), OPENSSL_EC_NAMED_CURVE) == 1 &&
        EVP_PKEY_keygen(context.get(), &key) == 1);
  return Key(key);
}

Certificate SignedWith(EVP_PKEY* key) {
  Certificate made(X509_new());
  Check(made != nullptr);
  X509* const certificate = made.get();
  X509_NAME* const name = X509_get_subject_name(certificate);
  Check(X509_set_version(certificate, 2) == 1 &&
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
        X509_gmtime_adj(X509_getm_notBefore(certificate), -kSecondsBefore) != nullptr &&
        X509_gmtime_adj(X509_getm_notAfter(certificate), kSecondsAfter) != nullptr &&
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>("hipress"), -1, -1,
                                   0) == 1 &&
        X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
        X509_sign(certificate, key, EVP_sha256()) > 0);
  return made;
}

}  // namespace

TlsStream::TlsStream(int fd, bool caller, const Mac& key)
    : fd_(fd), key_(key), ssl_(SSL_new(Context(caller))), in_(kInBytes) {
  BIO* bio = BIO_new(Method());
  if (ssl_ == nullptr || bio == nullptr) throw Error("OpenSSL cannot make a TLS connection");
  out_.reserve(kPlainPerFlush + (16 << 10));
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, this);
  if (caller) {
    SSL_set_connect_state(ssl_);
  } else {
    SSL_set_accept_state(ssl_);
  }
}

TlsStream::~TlsStream() {
  SSL_free(ssl_);
  ERR_clear_error();
}

BIO_METHOD* TlsStream::Method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "hipress socket");
    BIO_meth_set_read(m, BioRead);
    BIO_meth_set_write(m, BioWrite);
    BIO_meth_set_ctrl(m, BioControl);
    return m;
  }();
  return method;
}

int TlsStream::BioRead(BIO* bio, char* data, int size) {
  auto* self = static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (self->in_begin_ == self->in_end_) {
    ssize_t n;
    do {
      n = recv(self->fd_, self->in_.data(), self->in_.size(), MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) {
      self->socket_result_ = n == 0 ? kEof : -errno;
      if (self->socket_result_ == kWouldBlock) BIO_set_retry_read(bio);
      return -1;
    }
    self->in_begin_ = 0;
    self->in_end_ = static_cast<size_t>(n);
  }
  const size_t take = std::min<size_t>(static_cast<size_t>(size), self->in_end_ - self->in_begin_);
  std::memcpy(data, self->in_.data() + self->in_begin_, take);
  self->in_begin_ += take;
  return static_cast<int>(take);
}

int TlsStream::BioWrite(BIO* bio, const char* data, int size) {
  auto* self = static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  self->out_.insert(self->out_.end(), data, data + size);
  return size;
}

long TlsStream::BioControl(BIO* bio, int command, long number, void* pointer) {  // NOLINT
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

ssize_t TlsStream::FlushOut() {
  while (out_begin_ < out_.size()) {
    const ssize_t n = send(fd_, out_.data() + out_begin_, out_.size() - out_begin_,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      out_begin_ += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      return -errno;
    }
  }
  out_.clear();
  out_begin_ = 0;
  return 1;
}

ssize_t TlsStream::Failure(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return kWouldBlock;
    case SSL_ERROR_ZERO_RETURN: return kEof;
    case SSL_ERROR_SYSCALL:
      ERR_clear_error();
      return socket_result_ == kWouldBlock ? -EPROTO : socket_result_;
    default: {
      const unsigned long code = ERR_get_error();  // NOLINT
      const char* reason = ERR_reason_error_string(code);
      ERR_clear_error();
      // An end of stream without close_notify: our goodbye message says what close_notify would.
      if (socket_result_ == kEof) return kEof;
      error_ = reason != nullptr ? reason : "protocol error";
      return -EPROTO;
    }
  }
}

TlsStream::Progress TlsStream::Handshake() {
  ERR_clear_error();
  socket_result_ = kWouldBlock;
  const int result = SSL_do_handshake(ssl_);
  const ssize_t flushed = FlushOut();
  if (flushed == kWouldBlock) return Progress::kWantWrite;
  if (flushed < 0) {
    error_ = ErrnoText(static_cast<int>(-flushed));
    return Progress::kFailed;
  }
  if (result == 1) return Progress::kDone;
  const ssize_t why = Failure(result);
  if (why == kWouldBlock) return Progress::kWantRead;
  if (why == kEof) error_ = "the connection was closed";
  if (error_.empty()) error_ = ErrnoText(static_cast<int>(-why));
  return Progress::kFailed;
}

ssize_t TlsStream::Read(const iovec* pieces, int count) {
  ERR_clear_error();
  socket_result_ = kWouldBlock;
  ssize_t total = 0;
  for (int i = 0; i < count; ++i) {
    auto* data = static_cast<uint8_t*>(pieces[i].iov_base);
    for (size_t got = 0; got < pieces[i].iov_len;) {
      size_t n = 0;
      const int result = SSL_read_ex(ssl_, data + got, pieces[i].iov_len - got, &n);
      // What failed will fail again at the next call, once these bytes are used.
      if (result != 1) return total > 0 ? total : Failure(result);
      got += n;
      total += static_cast<ssize_t>(n);
    }
  }
  return total;
}

ssize_t TlsStream::Write(const iovec* pieces, int count) {
  ERR_clear_error();
  const ssize_t before = FlushOut();
  if (before < 0) return before;
  size_t total = 0;
  for (int i = 0; i < count && total < kPlainPerFlush;) {
    gathered_.clear();
    for (; i < count && gathered_.size() + pieces[i].iov_len <= SSL3_RT_MAX_PLAIN_LENGTH; ++i) {
      const auto* data = static_cast<const uint8_t*>(pieces[i].iov_base);
      gathered_.insert(gathered_.end(), data, data + pieces[i].iov_len);
    }
    const iovec piece = gathered_.empty() ? pieces[i++] : iovec{gathered_.data(), gathered_.size()};
    const auto* data = static_cast<const uint8_t*>(piece.iov_base);
    for (size_t put = 0; put < piece.iov_len && total < kPlainPerFlush;) {
      size_t n = 0;
      const size_t take = std::min(piece.iov_len - put, kPlainPerFlush - total);
      const int result = SSL_write_ex(ssl_, data + put, take, &n);
      if (result != 1) return Failure(result);
      put += n;
      total += n;
    }
  }
  written_since_key_update_ += total;
  if (written_since_key_update_ > kBytesPerKey) {
    SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);
    written_since_key_update_ = 0;
  }
  const ssize_t after = FlushOut();
  if (after < 0 && after != kWouldBlock) return after;
  return total > 0 ? static_cast<ssize_t>(total) : kWouldBlock;
}

std::unique_ptr<TlsStream> CallerTls(int fd, const Mac& key, const Deadline& deadline) {
  auto stream = std::make_unique<TlsStream>(fd, true, key);
  for (;;) {
    const TlsStream::Progress progress = stream->Handshake();
    if (progress == TlsStream::Progress::kDone) return stream;
    if (progress == TlsStream::Progress::kFailed) {
      throw HandshakeBroken("the TLS handshake failed: " + stream->error());
    }
    if (!WaitFor(fd, progress == TlsStream::Progress::kWantRead, deadline)) {
      throw HandshakeBroken("did not answer the TLS handshake in time");
    }
  }
}

std::string MakeCertificate() {
  const Key key = MakeKey();
  const Certificate certificate = SignedWith(key.get());
  const Bio text(BIO_new(BIO_s_mem()));
  Check(text != nullptr && PEM_write_bio_X509(text.get(), certificate.get()) == 1 &&
        PEM_write_bio_PrivateKey(text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                 nullptr) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);  // NOLINT
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace hipress
