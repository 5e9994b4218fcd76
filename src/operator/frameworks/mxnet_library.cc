/*!
 * \file mxnet_library.cc
 * \brief libhipress_mxnet_ops.so: operators of all codecs that are registered when MXNet loads it.
 *
 * Algorithms that are loaded later get theirs from a copy of this library under another name: a
 * copy "NAME@TYPE.so" registers the operators of TYPE alone. Python's load_operators() does it.
 */
#include <dlfcn.h>

#include <array>
#include <sstream>
#include <string>
#include <utility>

#include "operator/frameworks/mxnet_operators.h"

#include "lib_api.cc"  // NOLINT(build/include): the extension interface's own code, of MXNet

namespace {

constexpr int kMaxCodecs = 32;

std::array<std::string, kMaxCodecs>& Types() {
  static auto* types = new std::array<std::string, kMaxCodecs>();
  return *types;
}

/// The functions of the codec at one place in the list.
template <size_t kPlace>
struct Slot {
  static const char* Type() { return Types()[kPlace].c_str(); }
  static void Register() {
    if (*Type() != '\0') hipress::mxnet_ops::Register<Slot>();
  }
};

template <size_t... kPlaces>
void RegisterAll(std::index_sequence<kPlaces...>) {
  (Slot<kPlaces>::Register(), ...);
}

}  // namespace

mxnet::ext::MXReturnValue initialize(int version) {
  if (version < 10700) {
    MX_ERROR_MSG << "HiPress's operators need MXNet 1.7 or later";
    return mxnet::ext::MX_FAIL;
  }
  Dl_info info;
  dladdr(reinterpret_cast<const void*>(&initialize), &info);
  const std::string path = info.dli_fname;
  const size_t at = path.rfind('@');
  if (at != std::string::npos) {
    Types()[0] = path.substr(at + 1, path.size() - at - 4);
  } else {
    const char* names = nullptr;
    hipress::client::Check(HipressCodecNames(&names));
    std::istringstream lines(names);
    for (size_t i = 0; i < kMaxCodecs && std::getline(lines, Types()[i]);) {
      if (Types()[i] != "none") ++i;  // an identity, whose payload's length depends on the dtype
    }
  }
  RegisterAll(std::make_index_sequence<kMaxCodecs>());
  return mxnet::ext::MX_SUCCESS;
}
