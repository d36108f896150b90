#include "hpqf/observe/export/prometheus.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "hpqf/observe/export/http.h"
#include "hpqf/observe/run/fixtures_test.h"

namespace hpqf::observe {
namespace {

int connected(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

std::string received(int fd) {
  std::string out;
  char piece[4096];
  for (ssize_t n; (n = ::recv(fd, piece, sizeof piece, 0)) > 0;) out.append(piece, static_cast<size_t>(n));
  ::close(fd);
  return out;
}

std::string asked(int port, const std::string& request) {
  const int fd = connected(port);
  EXPECT_EQ(::send(fd, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  return received(fd);
}

constexpr const char* kGet = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

TEST(PrometheusText, StateOfARun) {
  PrometheusState state;
  RunInfo run = made_run();
  run.name = "a\"b\\c\nd";
  run.resumed_from = 2;
  state.start(run);
  StepRecord bad = made_step(3, std::nan(""));
  bad.skipped = true;
  bad.changes = {"loss scale halved"};
  state.step(bad);
  std::string text = state.text();
  EXPECT_HAS(text, "hpqf_run_info{run=\"a\\\"b\\\\c\\nd\",model=\"resnet20\"");
  EXPECT_HAS(text, "\nhpqf_loss NaN\n");
  EXPECT_HAS(text, "\nhpqf_steps_total 3\n");
  EXPECT_HAS(text, "# TYPE hpqf_skipped_steps_total counter\nhpqf_skipped_steps_total 1\n");
  EXPECT_HAS(text, "\nhpqf_plan_changes_total 1\n");
  EXPECT_HAS(text, "\nhpqf_running 1\n");
  EXPECT_HAS_NOT(text, "hpqf_grad_norm") << "never computed";
  EXPECT_HAS_NOT(text, "hpqf_precision_flops_ratio") << "no audit yet";
  state.audit(made_audit());
  state.evaluation({3, 0, 0.5, 0.75, 10, std::nullopt});
  state.step(made_step(4, 0.25));
  state.finish({.steps = 4, .unix_seconds = 1.8e9});
  text = state.text();
  EXPECT_HAS(text, "\nhpqf_loss 0.25\n");
  EXPECT_HAS(text, "hpqf_precision_flops_ratio{format=\"int8\",arithmetic=\"native\"} 0.6\n");
  EXPECT_HAS(text, "hpqf_precision_flops_ratio{format=\"bf16\",arithmetic=\"emulated\"} 0.2\n");
  EXPECT_HAS(text, "\nhpqf_validation_accuracy_ratio 0.75\n");
  EXPECT_HAS(text, "\nhpqf_running 0\n");
  EXPECT_HAS(text, "\nhpqf_last_step_timestamp_seconds 1800000000\n");
  EXPECT_EQ(text.back(), '\n');
}

TEST(PrometheusTextfile, ReplacedAsAWholeAndNotAtEachStep) {
  const Folder folder;
  PrometheusTextfileSink sink(folder / "x/run.prom", true, 3600);
  sink.start(made_run());
  sink.step(made_step(1));
  EXPECT_HAS(base::read_file(folder / "x/run.prom"), "hpqf_steps_total 1\n");
  sink.step(made_step(2));
  EXPECT_HAS(base::read_file(folder / "x/run.prom"), "hpqf_steps_total 1\n");
  sink.finish({.steps = 2, .unix_seconds = 1.7e9});
  EXPECT_HAS(base::read_file(folder / "x/run.prom"), "hpqf_steps_total 2\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "x"), {}), 1) << "no temporary file stays";
}

TEST(Http, Answers) {
  const auto body = [] { return std::string("metrics\n"); };
  const auto status = [&](const std::string& request) {
    const auto answer = http_answer(request, body);
    return answer ? answer->substr(9, 3) : "";
  };
  EXPECT_EQ(status(kGet), "200");
  EXPECT_EQ(status("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), "200");
  EXPECT_EQ(status("GET /metrics HTTP/1.1\n\n"), "200");
  EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), "404");
  EXPECT_EQ(status("GET /metrics2 HTTP/1.1\r\n\r\n"), "404");
  EXPECT_EQ(status("GET /../etc/passwd HTTP/1.1\r\n\r\n"), "404");
  EXPECT_EQ(status("POST /metrics HTTP/1.1\r\n\r\n"), "405");
  for (const char* bad : {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics FTP/1.1\r\n\r\n"})
    EXPECT_EQ(status(bad), "400") << bad;
  EXPECT_EQ(status("GET /metrics HTTP/1.1\r\n"), "") << "not all there";
  EXPECT_EQ(status(std::string(kLongestRequest + 1, 'x')), "431");
  EXPECT_HAS(*http_answer(kGet, body), "text/plain; version=0.0.4");
  EXPECT_HAS(*http_answer(kGet, body), "Content-Length: 8\r\n");
}

TEST(PrometheusHttp, ServesTheStateWhileItChanges) {
  PrometheusHttpSink sink("0");
  EXPECT_HAS(sink.where(), "http://127.0.0.1:" + std::to_string(sink.port()) + "/metrics");
  sink.start(made_run());
  sink.step(made_step(1));
  EXPECT_HAS(asked(sink.port(), kGet), "hpqf_steps_total 1\n");
  std::thread scraper([&] {
    for (int i = 0; i < 50; ++i) EXPECT_HAS(asked(sink.port(), kGet), "hpqf_steps_total");
  });
  for (int64_t n = 2; n <= 2000; ++n) sink.step(made_step(n));
  scraper.join();
  EXPECT_HAS(asked(sink.port(), kGet), "hpqf_steps_total 2000\n");
}

TEST(PrometheusHttp, ClientsThatMisbehave) {
  MetricsServer server("127.0.0.1:0", [] { return std::string(1 << 20, 'm'); });
  EXPECT_HAS(asked(server.port(), "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"), "405");
  EXPECT_HAS(asked(server.port(), std::string(20000, 'x')), "431");
  ::close(connected(server.port()));  // says nothing and goes
  std::vector<int> silent;            // more than the server holds; they say nothing and stay
  for (int i = 0; i < 10; ++i) silent.push_back(connected(server.port()));
  EXPECT_EQ(asked(server.port(), kGet).size() >> 20, 1u) << "a large answer, past those";
  const int leaves = connected(server.port());  // asks, and does not wait for the answer
  ::send(leaves, kGet, 10, MSG_NOSIGNAL);
  ::send(leaves, kGet + 10, std::string(kGet).size() - 10, MSG_NOSIGNAL);
  ::close(leaves);
  EXPECT_HAS(asked(server.port(), kGet), "200 OK");
  for (const int fd : silent) ::close(fd);
}

TEST(PrometheusHttp, StopsAtOnceAlsoWithOpenConnections) {
  const auto begin = std::chrono::steady_clock::now();
  int fd = -1;
  {
    MetricsServer server("0", [] { return std::string(); });
    fd = connected(server.port());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3)) << "not the 5 s of a connection";
  EXPECT_EQ(received(fd), "");
}

TEST(PrometheusHttp, TakenPortsAndWrongAddresses) {
  const MetricsServer first("0", [] { return std::string("first\n"); });
  const std::string address = std::to_string(first.port());
  const std::string error = error_of([&] { MetricsServer(address, [] { return std::string(); }); });
  EXPECT_HAS(error, address);
  EXPECT_HAS(error, "Address already in use");
  EXPECT_HAS(error, "another port");
  EXPECT_HAS(asked(first.port(), kGet), "first\n");
  for (const char* bad :
       {"", "x", "-1", "65536", "9464x", "nowhere.example:9464", "1.2.3:1", "[::1", "[zz]:1", ":", "1:2:3"})
    EXPECT_HAS(error_of([&] { MetricsServer(bad, [] { return std::string(); }); }), "HOST:PORT") << bad;
}

}  // namespace
}  // namespace hpqf::observe
