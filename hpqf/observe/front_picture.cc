#include "hpqf/observe/front_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/base/error.h"

namespace hpqf::observe {
namespace {

constexpr double kWidth = 640, kHeight = 400, kLeft = 80, kRight = 20, kTop = 40, kBottom = 50;

struct Axis {
  double low, high, from, to;  // values, and where they lie
  double at(double value) const { return high > low ? from + (value - low) / (high - low) * (to - from) : from; }
};

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}

// Of the candidates on the axis of the front.
double cost_of(const plan::Candidate& candidate, const std::string& kind) {
  for (const plan::Amount& amount : candidate.amounts)
    if (amount.kind == kind) return amount.value;
  return 0;
}

}  // namespace

std::string front_picture(const plan::Allocation& a) {
  if (a.front.empty())
    throw Error("a picture of an allocation without a front", "a front of points", "set front_points");
  double least = INFINITY, most = 0, low = INFINITY, high = -INFINITY;
  auto see = [&](double cost, double loss) {
    low = std::min(low, cost);
    high = std::max(high, cost);
    most = std::max(most, loss);
    if (loss > 0) least = std::min(least, loss);
  };
  for (const plan::AllocationPoint& p : a.front) see(p.cost, p.loss);
  for (const plan::Candidate& c : a.candidates) see(cost_of(c, a.front_kind), c.loss);
  if (!(most > 0)) least = most = 1;
  const auto height = [least](double loss) { return std::log10(std::max(loss, least)); };
  const Axis x{low, high, kLeft, kWidth - kRight};
  const Axis y{std::floor(height(least)), std::max(std::ceil(height(most)), std::floor(height(least)) + 1),
               kHeight - kBottom, kTop};

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, kHeight);
  svg += label(kWidth / 2, 20, "middle",
               fmt::format("predicted change of the loss, nats (modelled), over {}", a.front_kind));
  for (double decade = y.low; decade <= y.high; decade += 1) {
    svg += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n", kLeft,
                       kWidth - kRight, y.at(decade), y.at(decade));
    svg += label(kLeft - 6, y.at(decade) + 4, "end", fmt::format("1e{:.0f}", decade));
  }
  constexpr int kTicks = 5;
  for (int k = 0; k <= kTicks; ++k) {
    const double value = low + (high - low) * k / kTicks;
    svg += label(x.at(value), kHeight - kBottom + 18, "middle", fmt::format("{:.4g}", value));
  }
  svg += label(kWidth / 2, kHeight - 10, "middle", a.front_kind);
  svg += "<polyline fill=\"none\" stroke=\"#0072b2\" stroke-width=\"1.5\" points=\"";
  for (const plan::AllocationPoint& p : a.front)
    svg += fmt::format("{:.1f},{:.1f} ", x.at(p.cost), y.at(height(p.loss)));
  svg += "\"/>\n";
  for (const plan::AllocationPoint& p : a.front)
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"#0072b2\"><title>{} {:.6g}: {:.6g} "
        "nats</title></circle>\n",
        x.at(p.cost), y.at(height(p.loss)), a.front_kind, p.cost, p.loss);
  double below = 14;  // names of marks at one place go below one another
  for (const plan::Candidate& c : a.candidates) {
    const double cx = x.at(cost_of(c, a.front_kind)), cy = y.at(height(c.loss));
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"8\" height=\"8\" fill=\"none\" stroke=\"#d55e00\"/>\n",
                       cx - 4, cy - 4);
    svg += label(std::min(cx + 8, kWidth - 90), cy - below, "start", c.name);
    below += 12;
  }
  return svg + "</svg>\n";
}

std::string front_page(const plan::Allocation& a) {
  return "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Pareto front of formats</title>\n<body>\n" +
         front_picture(a) + "</body></html>\n";
}

}  // namespace hpqf::observe
