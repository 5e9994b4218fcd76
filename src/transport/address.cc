#include "transport/address.h"

#include <ifaddrs.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/types.h"
#include "transport/socket.h"

namespace hipress {
namespace {

/// Finds the local address of the route to `target`. \return the errno, 0 if there is a route
int Route(const SocketAddress& target, SocketAddress* from) {
  // Connecting a datagram socket sends nothing; it only makes the kernel choose the route.
  const UniqueFd fd(socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto& to = target.endpoint();
  if (fd.get() < 0 || connect(fd.get(), to.data(), socklen_t(to.size())) != 0) return errno;
  *from = LocalAddress(fd.get());
  return 0;
}

bool HasRoute(SocketAddress target) {
  constexpr int kDiscard = 9;  // RFC 863; port 0 cannot be connected to
  target.set_port(kDiscard);
  SocketAddress from;
  return Route(target, &from) == 0;
}

}  // namespace

SocketAddress::SocketAddress(const HostBytes& host, int port) {
  const asio::ip::address_v6 v6(host);
  asio::ip::address address = v6;
  if (v6.is_v4_mapped()) address = asio::ip::make_address_v4(asio::ip::v4_mapped, v6);
  endpoint_ = {address, static_cast<uint16_t>(port)};
}

SocketAddress::SocketAddress(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    std::memcpy(endpoint_.data(), address, sizeof(sockaddr_in));
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 in;
    std::memcpy(&in, address, sizeof(in));
    HostBytes host;
    std::memcpy(host.data(), &in.sin6_addr, host.size());
    *this = SocketAddress(host, ntohs(in.sin6_port));
  }
}

SocketAddress::HostBytes SocketAddress::host() const {
  const asio::ip::address address = endpoint_.address();
  if (address.is_v6()) return address.to_v6().to_bytes();
  return asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()).to_bytes();
}

bool SocketAddress::IsLinkLocal() const {
  return family() == AF_INET6 && endpoint_.address().to_v6().is_link_local();
}

std::string SocketAddress::ToText() const { return JoinAddress(HostText(), port()); }

std::string JoinAddress(const std::string& host, int port) {
  const bool bare_v6 = host.find(':') != std::string::npos && host.front() != '[';
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::pair<std::string, int> SplitAddress(const std::string& address) {
  const auto fail = [&address] {
    throw Error("an address is written host:port, or [IPv6 address]:port, with a port from 1 to 65535, not '" +
                address + "'");
  };
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) fail();
  std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  const int number = digits ? std::stoi(port) : 0;
  const bool brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  const bool is_v6 = host.find(':') != std::string::npos;
  if (host.empty() || is_v6 != brackets || number < 1 || number > 65535) fail();
  return {host, number};
}

SocketAddress Resolve(const std::string& host, int port) {
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string name = brackets ? host.substr(1, host.size() - 2) : host;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  // A zone ("%eth0") has no meaning on another host.
  const bool zone = name.find('%') != std::string::npos;
  const int error = getaddrinfo(name.substr(0, name.find('%')).c_str(), nullptr, &hints, &list);
  if (error != 0) {
    throw Error("host '" + host + "' has no IPv4 or IPv6 address: " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  std::vector<SocketAddress> candidates;
  for (const addrinfo* it = list; it != nullptr; it = it->ai_next) {
    const SocketAddress address(it->ai_addr);
    if (!address.IsLinkLocal()) candidates.push_back(address);
  }
  if (candidates.empty() || zone) {
    throw Error("'" + host + "' is a link-local IPv6 address, which has a different meaning on each network "
                "interface; use a global address, a unique local address (fd00::/8) or a host name");
  }
  const auto begin = candidates.begin(), end = candidates.end();
  std::stable_partition(begin, end, [](const SocketAddress& a) { return a.family() == AF_INET; });
  const auto routed = candidates.size() == 1 ? begin : std::find_if(begin, end, HasRoute);
  SocketAddress address = routed == end ? candidates.front() : *routed;
  address.set_port(port);
  return address;
}

std::string AddressOfInterface(const std::string& name, int family) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) throw Error("cannot list network interfaces: " + ErrnoText(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, freeifaddrs);
  std::vector<std::pair<std::string, std::vector<SocketAddress>>> interfaces;
  for (const ifaddrs* it = all; it != nullptr; it = it->ifa_next) {
    if (it->ifa_addr == nullptr) continue;
    if (it->ifa_addr->sa_family != AF_INET && it->ifa_addr->sa_family != AF_INET6) continue;
    const SocketAddress address(it->ifa_addr);
    if (address.IsLinkLocal()) continue;
    auto entry = std::find_if(interfaces.begin(), interfaces.end(),
                           [&](const auto& one) { return one.first == it->ifa_name; });
    if (entry == interfaces.end()) entry = interfaces.insert(entry, {it->ifa_name, {}});
    entry->second.push_back(address);
  }
  std::string others;
  for (const auto& [interface, addresses] : interfaces) {
    if (interface == name) {
      const auto preferred = std::find_if(addresses.begin(), addresses.end(),
                                          [&](const SocketAddress& a) { return a.family() == family; });
      return (preferred == addresses.end() ? addresses.front() : *preferred).HostText();
    }
    others += (others.empty() ? "" : ", ") + interface + " (";
    for (const SocketAddress& address : addresses) {
      others += (others.back() == '(' ? "" : ", ") + address.HostText();
    }
    others += ")";
  }
  throw Error("DMLC_INTERFACE names '" + name + "', but the interfaces with an address are " +
              (others.empty() ? "none" : others) + "; link-local IPv6 addresses do not count");
}

std::string AddressTowards(const std::string& host) {
  constexpr int kDiscard = 9;
  SocketAddress from;
  const int error = Route(Resolve(host, kDiscard), &from);
  if (error != 0) throw Error("there is no route to " + host + ": " + ErrnoText(error));
  return from.HostText();
}

}  // namespace hipress
