/*!
 * \file tls.h
 * \brief TLS 1.3 over a connected socket with a key that both ends already share.
 *
 * No certificates: the pre-shared key is derived from the job secret and both nonces of the
 * handshake, and an ephemeral key exchange gives forward secrecy.
 */
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "transport/handshake.h"
#include "transport/stream.h"

namespace hipress {

class TlsStream final : public Stream {
 public:
  TlsStream(int fd, bool caller, const Mac& key);
  ~TlsStream() override;

  enum class Progress { kDone, kWantRead, kWantWrite, kFailed };
  /// To be called until it is kDone, waiting in between for what it says.
  Progress Handshake();
  /// The reason why the last operation failed.
  const std::string& error() const { return error_; }
  const Mac& key() const { return key_; }

  ssize_t Read(const iovec* pieces, int count) override;
  ssize_t Write(const iovec* pieces, int count) override;
  bool HasUnsent() const override { return out_begin_ < out_.size(); }
  bool ShortReadMeansNothing() const override { return true; }

 private:
  static BIO_METHOD* Method();
  static int BioRead(BIO* bio, char* data, int size);
  static int BioWrite(BIO* bio, const char* data, int size);
  static long BioControl(BIO* bio, int command, long number, void* pointer);  // NOLINT
  /// Moves encrypted bytes to the socket. \return 1 when none are left, else as Stream
  ssize_t FlushOut();
  ssize_t Failure(int result);

  int fd_;
  Mac key_;
  SSL* ssl_ = nullptr;
  // Encrypted bytes pass through these, so that one system call moves many records.
  std::vector<uint8_t> in_, out_;
  size_t in_begin_ = 0, in_end_ = 0, out_begin_ = 0;
  std::vector<uint8_t> gathered_;  ///< small pieces that share a record
  ssize_t socket_result_ = 0;  ///< why the last read from the socket moved nothing
  uint64_t written_since_key_update_ = 0;
  std::string error_;
};

/// Finishes the caller's TLS handshake, waiting with poll. \throw HandshakeBroken
std::unique_ptr<TlsStream> CallerTls(int fd, const Mac& key, const Deadline& deadline);

/// Makes a new key pair (P-256) and a certificate that is signed with it, for a TLS server in
/// Python, whose ssl module cannot make one.
/// \return the certificate and the private key, as PEM
/// \throw Error if OpenSSL cannot
std::string MakeCertificate();

}  // namespace hipress
