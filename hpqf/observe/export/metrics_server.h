// The smallest HTTP server that Prometheus can scrape: one thread, GET /metrics, nothing else.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "hpqf/base/export.h"

namespace hpqf::observe {

// Answers one request per connection. A request longer than 8 KiB is refused; a connection that is not through after 5
// s is closed; at most 16 are open, more wait in the kernel's queue. `body` is called on the server's thread.
class HPQF_API MetricsServer {
 public:
  // `address`: "PORT" (on 127.0.0.1), "HOST:PORT" with an IPv4 address or localhost, or "[IPv6]:PORT". Error: no such
  // address, or the port is taken (naming it and what to do).
  MetricsServer(const std::string& address, std::function<std::string()> body);
  ~MetricsServer();  // closes all connections and joins the thread; takes at most as long as one call of `body`
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const;
  std::string url() const;  // "http://127.0.0.1:9464/metrics"

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpqf::observe
