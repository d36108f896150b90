#include "apps/hpqf/bench_conv_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <regex>

#include "apps/hpqf/bench_options.h"
#include "apps/hpqf/bench_shapes.h"
#include "hpqf/base/error.h"
#include "hpqf/observe/human.h"

namespace hpqf::app {
namespace {

using kernels::ConvShape;

constexpr const char* kAllowed =
    "IMAGESxCHANNELSxSIZExOUTPUTS with an odd kernel, a stride and groups behind a colon, as 16x64x56x128:k3s2g1; "
    "each from 1 to 65536";

int64_t number(const std::ssub_match& text, int64_t absent) { return text.matched ? std::stoll(text) : absent; }

// Images, results and their gradients in fp32 in two layouts and in bf16, weights, and one product in fp64.
double needed_bytes(const ConvShape& s) {
  const double x = double(s.batch) * double(s.in_channels) * double(s.height) * double(s.width);
  const double y = double(s.batch) * double(s.out_channels) * double(s.out_height()) * double(s.out_width());
  const double w = double(s.out_channels) * double(s.in_channels) * double(s.kernel_h) * double(s.kernel_w);
  return 24 * (x + y + w);
}

}  // namespace

std::string to_string(const ConvShape& s) {
  return fmt::format("{}x{}x{}x{}:k{}s{}g{}", s.batch, s.in_channels, s.height, s.out_channels, s.kernel_h, s.stride_h,
                     s.groups);
}

ConvShape parse_conv_shape(const std::string& text) {
  static const std::regex kPattern(
      R"((\d{1,5})x(\d{1,5})x(\d{1,5})x(\d{1,5})(?::(?:k(\d{1,2}))?(?:s(\d{1,2}))?(?:g(\d{1,5}))?)?)");
  std::smatch part;
  if (!std::regex_match(text, part, kPattern)) refuse("shapes", text, kAllowed);
  ConvShape s;
  s.batch = number(part[1], 0), s.in_channels = number(part[2], 0), s.out_channels = number(part[4], 0);
  s.height = s.width = number(part[3], 0);
  s.kernel_h = s.kernel_w = number(part[5], 3);
  s.stride_h = s.stride_w = number(part[6], 1);
  s.groups = number(part[7], 1);
  s.padding_h = s.padding_w = s.kernel_h / 2;
  const auto in_range = [](int64_t v) { return v >= 1 && v <= 65536; };
  if (!in_range(s.batch) || !in_range(s.in_channels) || !in_range(s.height) || !in_range(s.out_channels) ||
      s.kernel_h % 2 == 0 || s.stride_h < 1 || s.groups < 1)
    refuse("shapes", text, kAllowed);
  if (s.in_channels % s.groups != 0 || s.out_channels % s.groups != 0)
    refuse("shapes", text, "groups that divide both numbers of channels");
  if (const double needed = needed_bytes(s); needed > memory_bytes() / 2)
    refuse("shapes", text,
           fmt::format("sizes that need at most half of this machine's {} of memory; this one needs about {}",
                       observe::human_bytes(memory_bytes()), observe::human_bytes(needed)));
  return s;
}

std::vector<ConvShape> model_conv_shapes(const std::string& model, int64_t batch_size) {
  std::vector<ConvShape> shapes;
  for (const auto& [layer, seen] : seen_shapes(model, batch_size)) {
    if (seen.op != "conv") continue;
    const auto& [x, w, g] = std::tie(seen.a, seen.b, seen.geometry);
    ConvShape s;
    s.batch = x.at(0), s.in_channels = x.at(1), s.height = x.at(2), s.width = x.at(3);
    s.out_channels = w.at(0), s.kernel_h = w.at(2), s.kernel_w = w.at(3);
    s.stride_h = g.at(0), s.stride_w = g.at(1), s.padding_h = g.at(2), s.padding_w = g.at(3);
    s.dilation_h = g.at(4), s.dilation_w = g.at(5), s.groups = g.at(6);
    const bool known = std::any_of(shapes.begin(), shapes.end(),
                                   [&](const ConvShape& other) { return to_string(other) == to_string(s); });
    if (!known) shapes.push_back(s);
  }
  if (shapes.empty()) throw Error("the convolutions of " + model, "a model with a convolution", "give --shapes");
  return shapes;
}

}  // namespace hpqf::app
