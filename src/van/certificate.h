/*!
 * \file certificate.h
 * \brief Makes the certificate of a TLS server in Python, whose ssl module cannot make one.
 *
 * Connections of the van need no certificate: they have a pre-shared key (tls.h).
 */
#pragma once

#include <string>

namespace hipress {

/// Makes a new key pair (P-256) and a certificate that is signed with it.
/// \return the certificate and the private key, as PEM
/// \throw Error if OpenSSL cannot
std::string MakeCertificate();

}  // namespace hipress
