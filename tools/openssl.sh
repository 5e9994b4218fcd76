#!/usr/bin/env bash
# Builds a static OpenSSL for wheels: tools/openssl.sh PREFIX. cibuildwheel's images have OpenSSL
# 1.1.1, which its authors no longer maintain. OPENSSL_ARCHIVE names a release archive to use
# instead of a download. OPENSSL_VERSION and OPENSSL_SHA256 choose another release (`make wheel`
# uses the system's).
set -euo pipefail
prefix=${1:?usage: tools/openssl.sh PREFIX}
version=${OPENSSL_VERSION:-3.5.9}
sha256=${OPENSSL_SHA256:-603f5602e2eef00d77fbd429d34dcd5822bb301757a1bc9cdb24c670f1eb859a}
url=https://github.com/openssl/openssl/releases/download/openssl-$version/openssl-$version.tar.gz

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=${OPENSSL_ARCHIVE:-$work/openssl.tar.gz}
[[ -e $archive ]] || curl --fail --location --retry 5 --silent --show-error --output "$archive" "$url"
sha256sum --check --quiet <<<"$sha256  $archive"
tar -xzf "$archive" -C "$work"
cd "$work/openssl-$version"
# no-atexit and no-autoload-config: the library shares its process with other copies of OpenSSL, and
# the machine's openssl.cnf is written for another version.
./Configure --prefix="$prefix" --libdir=lib --openssldir=/etc/ssl no-shared no-module no-apps no-docs \
  no-tests no-legacy no-engine no-comp no-atexit no-autoload-config -fPIC -fvisibility=hidden
make -s -j "${JOBS:-$(nproc)}" build_libs
make -s install_dev
