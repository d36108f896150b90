#include "hpqf/observe/report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "hpqf/observe/report/axis.h"
#include "hpqf/observe/report/html.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

using Bucket = Series::Bucket;
constexpr double kWidth = 1000, kHeight = 300;
constexpr int kUpTicks = 6;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

class Drawing {
 public:
  Drawing(const LineChart& chart, Axis x, Axis y) : chart_(chart), x_(x), y_(y) {}

  std::string svg() const {
    std::string out =
        fmt::format("<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" aria-hidden=\"true\" focusable=\"false\">",
                    kWidth, kHeight);
    for (const Tick& tick : y_.ticks(kUpTicks))
      out += fmt::format("<path class=\"grid\" d=\"M0 {0:.1f}H{1}\"/>", kHeight * (1 - tick.position), kWidth);
    for (const Curve& curve : chart_.curves) out += this->curve(curve);
    if (!chart_.points.empty()) out += dots();
    if (!chart_.marks.empty()) out += marks();
    return out + "</svg>";
  }

 private:
  // A command of an SVG path: 'M' moves, 'L' draws a line.
  std::string to(char command, double step, double value) const {
    return fmt::format("{}{:.1f} {:.1f}", command, kWidth * x_.at(step), kHeight * (1 - y_.at(value)));
  }

  // Broken where a bucket has no finite point.
  template <class Value>
  std::string line(const char* css, const Curve& curve, Value&& value) const {
    const std::vector<Bucket>& buckets = curve.series->buckets();
    std::string d;
    bool open = false;
    double before = 0;
    for (size_t i = 0; i < buckets.size(); ++i) {
      const double y = value(i);
      if (!std::isfinite(y)) {
        open = false;
        continue;
      }
      if (open && chart_.steps) d += to('L', buckets[i].middle(), before);
      d += to(open ? 'L' : 'M', buckets[i].middle(), y);
      if (!open && (i + 1 == buckets.size() || buckets[i + 1].count == 0)) d += "h.1";  // a point on its own shows too
      open = true;
      before = y;
    }
    return fmt::format("<path class=\"{}{}\" d=\"{}\"/>", css, curve.second ? " second" : "", d);
  }

  std::string curve(const Curve& curve) const {
    const std::vector<Bucket>& buckets = curve.series->buckets();
    std::string out;
    if (curve.series->per_bucket() > 1 && !chart_.steps) {
      std::string there, back;
      for (const Bucket& b : buckets) {
        if (b.count == 0) continue;
        there += to(there.empty() ? 'M' : 'L', b.middle(), b.max);
      }
      for (auto b = buckets.rbegin(); b != buckets.rend(); ++b) {
        if (b->count > 0) back += to('L', b->middle(), b->min);
      }
      if (!there.empty())
        out += fmt::format("<path class=\"band{}\" d=\"{}{}Z\"/>", curve.second ? " second" : "", there, back);
    }
    const auto mean = [&](size_t i) { return buckets[i].count > 0 ? buckets[i].mean() : std::nan(""); };
    if (chart_.smoothing > 0) {
      const std::vector<double> smooth = smoothed(*curve.series, chart_.smoothing);
      out += line("raw", curve, mean);
      out += line("line", curve, [&](size_t i) { return smooth[i]; });
    } else {
      out += line("line", curve, mean);
    }
    return out;
  }

  // A line of no length with round ends is a dot, whatever the drawing is stretched to.
  std::string dots() const {
    std::string joined, dots;
    for (const ChartPoint& p : chart_.points) {
      if (!std::isfinite(p.value)) continue;
      joined += to(joined.empty() ? 'M' : 'L', p.step, p.value);
      dots += to('M', p.step, p.value) + "h.01";
    }
    return fmt::format("<path class=\"joined\" d=\"{}\"/><path class=\"dots\" d=\"{}\"/>", joined, dots);
  }

  std::string marks() const {
    std::string d;
    double last = -1;
    for (const int64_t step : chart_.marks) {
      const double x = kWidth * x_.at(static_cast<double>(step));
      if (x - last < 1) continue;  // they would lie on each other
      d += fmt::format("M{:.1f} {}v-14", x, kHeight);
      last = x;
    }
    return fmt::format("<path class=\"marks\" d=\"{}\"/>", d);
  }

  const LineChart& chart_;
  Axis x_, y_;
};

std::string labels(const char* css, const char* side, const std::vector<Tick>& ticks) {
  std::string out = fmt::format("<div class=\"{}\" aria-hidden=\"true\">", css);
  for (size_t i = 0; i < ticks.size(); ++i)
    out += fmt::format("<span style=\"{}:{:.2f}%\"{}>{}</span>", side, 100 * ticks[i].position,
                       i % 2 == 1 ? " class=\"odd\"" : "", ticks[i].label);
  return out + "</div>";
}

std::string legend(const LineChart& chart) {
  std::string out = "<p class=\"legend\">";
  const auto entry = [&](const std::string& css, const std::string& text) {
    out += fmt::format("<span><i class=\"{}\"></i>{}</span> ", css, html::escaped(text));
  };
  for (const Curve& curve : chart.curves) {
    const std::string second = curve.second ? " second" : "";
    const int64_t width = curve.series->per_bucket();
    if (chart.smoothing > 0) {
      entry("line" + second,
            fmt::format("{}, smoothed over about {:.0f} % of the run", curve.name, 100 * chart.smoothing));
      entry("raw" + second, width > 1 ? fmt::format("mean of {} steps", html::grouped(width)) : "each step");
      if (width > 1) entry("band" + second, "lowest to highest");
    } else {
      entry("line" + second,
            width > 1 ? fmt::format("{}, mean of {} steps", curve.name, html::grouped(width)) : curve.name);
      if (width > 1 && !chart.steps) entry("band" + second, "lowest to highest");
    }
  }
  if (!chart.points.empty()) entry("dots", chart.points_name);
  if (!chart.marks.empty()) entry("marks", chart.marks_name);
  return out + "</p>\n";
}

// What the pointer shows: steps, and for each curve the values there.
std::string data(const LineChart& chart) {
  std::string out = "{\"c\":[";
  for (size_t c = 0; c < chart.curves.size(); ++c) {
    const Series& series = *chart.curves[c].series;
    const std::vector<double> smooth = chart.smoothing > 0 ? smoothed(series, chart.smoothing) : std::vector<double>();
    out += fmt::format("{}{{\"n\":{},\"p\":[", c ? "," : "", plan::json_quote(chart.curves[c].name));
    for (size_t i = 0; i < series.buckets().size(); ++i) {
      const Bucket& b = series.buckets()[i];
      out += fmt::format("{}[{}", i ? "," : "", b.first);
      if (b.last > b.first) out += fmt::format(",{}", b.last);
      out += "]";
    }
    out += "],\"v\":[";
    for (size_t i = 0; i < series.buckets().size(); ++i) {
      const Bucket& b = series.buckets()[i];
      out += i ? "," : "";
      out += b.count > 0 ? fmt::format("{:.4g}", b.mean()) : "\"not finite\"";
    }
    out += "],\"s\":[";
    for (size_t i = 0; i < smooth.size(); ++i)
      out += fmt::format("{}{}", i ? "," : "", std::isfinite(smooth[i]) ? fmt::format("{:.4g}", smooth[i]) : "null");
    out += "]}";
  }
  return out + "]}";
}

std::string value_table(const LineChart& chart) {
  std::vector<std::string> titles{"steps"};
  std::vector<size_t> right{0};
  constexpr size_t kRows = 24;
  std::string out;
  for (const Curve& curve : chart.curves) {
    const std::vector<Bucket>& buckets = curve.series->buckets();
    std::vector<std::vector<std::string>> rows;
    const size_t count = std::min(kRows, buckets.size());
    for (size_t r = 0; r < count; ++r) {
      const Bucket& b = buckets[count > 1 ? r * (buckets.size() - 1) / (count - 1) : 0];
      rows.push_back({b.last > b.first ? fmt::format("{} to {}", html::grouped(b.first), html::grouped(b.last))
                                       : html::grouped(b.first),
                      b.count > 0 ? html::number(b.mean()) : "not finite", b.count > 0 ? html::number(b.min) : "",
                      b.count > 0 ? html::number(b.max) : ""});
    }
    out += html::table({"steps", "mean", "lowest", "highest"}, rows, {0, 1, 2, 3},
                       html::escaped(chart.title + ": " + curve.name));
  }
  if (!chart.points.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < chart.points.size(); i += 1 + chart.points.size() / kRows)
      rows.push_back({html::grouped(static_cast<int64_t>(chart.points[i].step)), html::number(chart.points[i].value)});
    out += html::table({"step", html::escaped(chart.points_name)}, rows, {0, 1},
                       html::escaped(chart.title + ": " + chart.points_name));
  }
  return fmt::format("<details><summary>As a table</summary>{}</details>\n", out);
}

}  // namespace

std::string draw(const LineChart& chart) {
  Range x, y;
  for (const Curve& curve : chart.curves) {
    for (const Bucket& b : curve.series->buckets()) {
      x.add(static_cast<double>(b.first));
      x.add(static_cast<double>(b.last));
      if (b.count == 0) continue;
      y.add(b.min);
      y.add(b.max);
    }
  }
  for (const ChartPoint& p : chart.points) {
    x.add(p.step);
    y.add(p.value);
  }
  if (chart.last_step > 0) {
    x.add(chart.first_step);
    x.add(chart.last_step);
  }
  if (!(y.low <= y.high)) return "";
  const bool logarithmic = y.low > 0 && y.high / y.low > 50;
  const Axis across(x.low, x.high, false, false), up(y.low, y.high, logarithmic, true);
  const Drawing drawing(chart, across, up);
  const std::string unit = chart.unit.empty() ? "" : ", " + chart.unit;
  const std::string first = html::grouped(static_cast<int64_t>(x.low)),
                    last = html::grouped(static_cast<int64_t>(x.high));
  return fmt::format(
      "<figure class=\"chart\" id=\"chart-{}\"><figcaption><b>{}</b><span class=\"unit\">{}{}</span>{}</figcaption>\n"
      "<div class=\"plot\" role=\"img\" aria-label=\"{} over steps {} to {}, from {} to {}\">{}<div class=\"area\">{}"
      "<div class=\"cross\" hidden></div></div>{}</div>\n{}{}"
      "<script type=\"application/json\">{}</script></figure>\n",
      html::escaped(chart.id), html::escaped(chart.title), html::escaped(chart.unit),
      logarithmic ? (chart.unit.empty() ? "logarithmic" : ", logarithmic") : "", html::badge(chart.basis),
      html::escaped(chart.title + unit), first, last, html::number(y.low), html::number(y.high),
      labels("ylabels", "bottom", up.ticks(kUpTicks)), drawing.svg(), labels("xlabels", "left", across.ticks(7)),
      legend(chart), value_table(chart),
      html::script_json(fmt::format("{{\"x\":[{},{}],\"d\":{}}}", x.low, x.high, data(chart))));
}

}  // namespace hpqf::observe
