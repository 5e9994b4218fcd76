#include "van/certificate.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "common/types.h"

namespace hipress {
namespace {

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
