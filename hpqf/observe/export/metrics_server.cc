#include "hpqf/observe/export/metrics_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "hpqf/base/clock.h"
#include "hpqf/base/error.h"
#include "hpqf/observe/export/http.h"

namespace hpqf::observe {
namespace {

constexpr size_t kMostConnections = 16;
constexpr int64_t kDeadlineNs = 5'000'000'000;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string host;  // as a URL has it
};

Address parse_address(const std::string& text) {
  const auto fail = [&] {
    throw Error(fmt::format("a metrics endpoint at '{}'", text),
                "a port from 0 to 65535, or HOST:PORT with an IPv4 address, [IPv6]:PORT or localhost:PORT",
                "for example 9464, or 0.0.0.0:9464 to be reached from other machines");
  };
  const size_t colon = text.rfind(':');
  std::string host = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  const std::string_view digits = std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1);
  int port = -1;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (code != std::errc() || end != digits.data() + digits.size() || port < 0 || port > 65535) fail();
  if (host == "localhost") host = "127.0.0.1";
  Address address;
  address.host = host;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof(sockaddr_in6);
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr) != 1) fail();
  } else {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof(sockaddr_in);
    if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) fail();
  }
  return address;
}

struct Connection {
  int fd;
  int64_t deadline;
  std::string in, out;
  bool answered = false, through = false;  // the answer is known; it is sent
};

}  // namespace

struct MetricsServer::Impl {
  std::function<std::string()> body;
  std::string host;
  int port = 0;
  int listener = -1;
  int wake[2] = {-1, -1};
  std::vector<Connection> connections;
  std::thread thread;

  ~Impl() {
    if (thread.joinable()) {
      const char stop = 0;
      while (::write(wake[1], &stop, 1) < 0 && errno == EINTR) {
      }
      thread.join();
    }
    for (const Connection& c : connections) ::close(c.fd);
    for (const int fd : {listener, wake[0], wake[1]})
      if (fd >= 0) ::close(fd);
  }

  void listen(const std::string& text) {
    const Address address = parse_address(text);
    host = address.host;
    listener = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    // Without it a port stays blocked for a minute after a run that was scraped.
    if (listener >= 0) ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
        ::listen(listener, 64) != 0 || ::pipe2(wake, O_CLOEXEC) != 0) {
      throw Error(fmt::format("a metrics endpoint at {}: {}", text, std::strerror(errno)),
                  "an address of this machine with a free port", "choose another port; 0 takes any that is free");
    }
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size);
    port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  }

  void accept_all(int64_t now) {
    while (connections.size() < kMostConnections) {
      const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) return;
      connections.push_back({fd, now + kDeadlineNs, {}, {}});
    }
  }

  // False: the connection is through.
  bool serve(Connection& c) {
    char piece[2048];
    while (!c.answered) {
      const ssize_t size = ::recv(c.fd, piece, sizeof piece, 0);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      if (size == 0) return false;
      c.in.append(piece, static_cast<size_t>(size));
      if (const auto answer = http_answer(c.in, body)) {
        c.out = *answer;
        c.answered = true;
      }
    }
    while (!c.out.empty()) {
      const ssize_t size = ::send(c.fd, c.out.data(), c.out.size(), MSG_NOSIGNAL);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      c.out.erase(0, static_cast<size_t>(size));
    }
    // Closing now would reset a client that is still sending, and the answer would be lost: read until it is through.
    if (!std::exchange(c.through, true)) ::shutdown(c.fd, SHUT_WR);
    for (;;) {
      const ssize_t size = ::recv(c.fd, piece, sizeof piece, 0);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
  }

  void run() {
    // Signals are the program's: this thread must not take the one that stops a run.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (;;) {
      const int64_t now = base::steady_ns();
      std::erase_if(connections, [&](const Connection& c) { return c.deadline <= now && (::close(c.fd), true); });
      std::vector<pollfd> polled{{wake[0], POLLIN, 0}};
      // Full: let the others wait in the kernel's queue.
      if (connections.size() < kMostConnections) polled.push_back({listener, POLLIN, 0});
      const size_t first = polled.size();
      int64_t wait = -1;
      for (const Connection& c : connections) {
        polled.push_back({c.fd, static_cast<short>(c.answered && !c.through ? POLLOUT : POLLIN), 0});
        const int64_t left = (c.deadline - now) / 1'000'000 + 1;
        wait = wait < 0 ? left : std::min(wait, left);
      }
      if (::poll(polled.data(), polled.size(), static_cast<int>(wait)) < 0) {
        if (errno == EINTR) continue;
        return;
      }
      if (polled[0].revents) return;
      for (size_t i = connections.size(); i-- > 0;) {
        if (!polled[first + i].revents || serve(connections[i])) continue;
        ::close(connections[i].fd);
        connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i));
      }
      accept_all(base::steady_ns());
    }
  }
};

MetricsServer::MetricsServer(const std::string& address, std::function<std::string()> body)
    : impl_(std::make_unique<Impl>()) {
  impl_->body = std::move(body);
  impl_->listen(address);
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}
MetricsServer::~MetricsServer() = default;

int MetricsServer::port() const { return impl_->port; }
std::string MetricsServer::url() const { return fmt::format("http://{}:{}/metrics", impl_->host, impl_->port); }

}  // namespace hpqf::observe
