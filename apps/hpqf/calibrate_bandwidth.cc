#include "apps/hpqf/calibrate_bandwidth.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "apps/hpqf/bench_timing.h"
#include "hpqf/base/clock.h"
#include "hpqf/kernels/quantize.h"

namespace hpqf::app {
namespace {

using device::machine::BandwidthFigure;
using device::machine::Measured;

constexpr int64_t kFloats = int64_t{16} << 20;  // 64 MiB: larger than the caches of most CPUs

Measured gigabytes(double bytes, int runs, const std::function<void()>& call) {
  const BenchClock wall(2);  // all threads work: the clock on the wall
  call();
  std::vector<double> rates;
  for (int i = 0; i < runs; ++i) rates.push_back(1e-9 * bytes / wall.seconds(call));
  const Spread s = spread(rates);
  return {s.median, s.q1, s.q3, runs};
}

// A connected pair over 127.0.0.1; closes what it opened.
class Loopback {
 public:
  Loopback() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0) return;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener, generic, size) == 0 && listen(listener, 1) == 0 && getsockname(listener, generic, &size) == 0) {
      sender_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      // The backlog takes the connection before it is accepted: one thread can do both.
      if (sender_ >= 0 && connect(sender_, generic, size) == 0) receiver_ = accept(listener, nullptr, nullptr);
    }
    close(listener);
  }
  ~Loopback() {
    if (sender_ >= 0) close(sender_);
    if (receiver_ >= 0) close(receiver_);
  }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  bool connected() const { return receiver_ >= 0; }

  // False when the connection broke.
  bool transfer(const std::vector<char>& data, std::vector<char>& into) {
    bool sent = true;
    std::thread sending([&] {
      for (size_t done = 0; done < data.size();) {
        const ssize_t n = send(sender_, data.data() + done, data.size() - done, MSG_NOSIGNAL);
        if (n <= 0) {
          sent = false;
          shutdown(sender_, SHUT_RDWR);  // the receiver must not wait for the rest
          return;
        }
        done += static_cast<size_t>(n);
      }
    });
    size_t done = 0;
    while (done < into.size()) {
      const ssize_t n = recv(receiver_, into.data() + done, into.size() - done, 0);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    if (done < into.size()) shutdown(receiver_, SHUT_RDWR);
    sending.join();
    return sent && done == into.size();
  }

 private:
  int sender_ = -1, receiver_ = -1;
};

}  // namespace

BandwidthFigure copy_bandwidth(int runs) {
  const at::Tensor from = at::full({kFloats}, 1.5f), to = at::zeros({kFloats});
  return {"copy", "bytes read and written by torch's copy of 64 MiB",
          gigabytes(2.0 * 4 * kFloats, runs, [&] { to.copy_(from); })};
}

BandwidthFigure quantise_bandwidth(int runs) {
  const at::Tensor from = at::full({kFloats}, 1.5f), to = at::zeros({kFloats});
  const kernels::BlockLayout layout{kFloats / 1024, 1024, 1};
  const BlockFormat format = formats::default_block(Format::int8);
  return {"quantise int8", "bytes read and written by rounding 64 MiB of fp32 to int8 blocks and back",
          gigabytes(2.0 * 4 * kFloats, runs, [&] {
            kernels::quantize_dequantize(from.const_data_ptr<float>(), to.mutable_data_ptr<float>(), layout, format);
          })};
}

BandwidthFigure optimizer_bandwidth(int runs) {
  constexpr int64_t kParameters = 4'000'000;
  const at::NoGradGuard no_grad;
  const auto tensor = [](float value) { return std::vector<at::Tensor>{at::full({kParameters}, value)}; };
  const std::vector<at::Tensor> parameters = tensor(0.5f), gradients = tensor(1e-3f), first = tensor(0),
                                second = tensor(0);
  const std::vector<at::Tensor> steps{at::scalar_tensor(1.0f)};
  return {"AdamW",
          "28 bytes a parameter: weight, gradient and two moments read, all but the gradient written; torch's fused "
          "loop, 4 M parameters",
          gigabytes(28.0 * kParameters, runs, [&] {
            at::_fused_adamw_(parameters, gradients, first, second, {}, steps, 1e-3, 0.9, 0.999, 0.01, 1e-8, false,
                              false);
          })};
}

BandwidthFigure loopback_bandwidth(int runs) {
  constexpr size_t kBytes = size_t{64} << 20;
  BandwidthFigure figure{
      "loopback TCP", "payload of one stream through 127.0.0.1, 64 MiB at a time; not an all-reduce", {}};
  Loopback pair;
  if (!pair.connected()) return figure;
  const std::vector<char> data(kBytes, 'x');
  std::vector<char> into(kBytes);
  bool whole = true;
  const Measured measured = gigabytes(kBytes, runs, [&] { whole = whole && pair.transfer(data, into); });
  if (whole) figure.gigabytes = measured;
  return figure;
}

}  // namespace hpqf::app
