/*!
 * \file address.h
 * \brief IPv4 and IPv6 addresses: as text, by host name, by network interface, by route.
 */
#pragma once

#include <sys/socket.h>

#include <asio/ip/address_v6.hpp>
#include <asio/ip/tcp.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace hipress {

/// Address and port of a socket.
///
/// An IPv4-mapped IPv6 address (::ffff:10.0.0.2), which a listener for both versions sees, is kept
/// as the IPv4 address that it contains. So addresses of one host compare equal.
class SocketAddress {
 public:
  /// An IPv6 address; an IPv4 address in its mapped form.
  using HostBytes = asio::ip::address_v6::bytes_type;

  /// 0.0.0.0:0
  SocketAddress() = default;
  SocketAddress(const HostBytes& host, int port);
  /// \param address of family AF_INET or AF_INET6; any other gives 0.0.0.0:0
  explicit SocketAddress(const sockaddr* address);

  /// For system calls: data() and size().
  const asio::ip::tcp::endpoint& endpoint() const { return endpoint_; }
  /// AF_INET or AF_INET6.
  int family() const { return endpoint_.protocol().family(); }
  int port() const { return endpoint_.port(); }
  void set_port(int port) { endpoint_.port(static_cast<uint16_t>(port)); }
  HostBytes host() const;
  bool IsLoopback() const { return endpoint_.address().is_loopback(); }
  /// Whether this is an IPv6 address in fe80::/10.
  bool IsLinkLocal() const;
  bool IsSameHost(const SocketAddress& other) const {
    return endpoint_.address() == other.endpoint_.address();
  }
  /// "10.0.0.2", "2001:db8::2"
  std::string HostText() const { return endpoint_.address().to_string(); }
  /// "10.0.0.2:4711", "[2001:db8::2]:4711"
  std::string ToText() const;

 private:
  asio::ip::tcp::endpoint endpoint_{asio::ip::tcp::v4(), 0};
};

/// Joins host and port: "host:port", with an IPv6 address in brackets.
std::string JoinAddress(const std::string& host, int port);
/// Splits "host:port" or "[IPv6 address]:port". \return the host without brackets
/// \throw Error unless the port is in 1..65535 and the host is not empty
std::pair<std::string, int> SplitAddress(const std::string& address);

/// Resolves a host name, or an address with or without brackets. Of several addresses, the first
/// IPv4 address that has a route is preferred, then the first IPv6 address that has one.
/// \throw Error if `host` has no address, or only a link-local one
SocketAddress Resolve(const std::string& host, int port);
/// The address of network interface `name`.
/// \param family preferred if the interface has both: AF_INET or AF_INET6
/// \throw Error that lists the interfaces there are
std::string AddressOfInterface(const std::string& name, int family = AF_INET);
/// The local address that packets to `host` would leave from. \throw Error if there is no route
std::string AddressTowards(const std::string& host);

}  // namespace hipress
