// A chart of curves over steps as inline SVG: it stretches to the width of the page while its text keeps its size.
#pragma once
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/run/series.h"

namespace hpqf::observe {

struct Curve {
  std::string name;                // plain text
  const Series* series = nullptr;  // not empty
  bool second = false;             // of the run that is compared with: another colour
};

struct ChartPoint {
  double step = 0, value = 0;
};

struct LineChart {
  std::string id{}, title{}, unit{};  // plain text
  std::string basis = "measured";
  std::vector<Curve> curves{};
  double smoothing = 0;              // share of the curve averaged over; 0: no smoothed curve
  bool steps = false;                // values hold until the next change
  std::vector<ChartPoint> points{};  // e.g. evaluations, drawn as dots joined by a line
  std::string points_name{};
  double first_step = 0, last_step = 0;  // shown even where there are no values
  std::vector<int64_t> marks{};          // steps marked at the foot, e.g. skipped ones
  std::string marks_name{};
};

// A <figure> with the drawing, a legend, the values under the pointer and a table of them. Empty when there is nothing
// finite to draw.
HPQF_API std::string draw(const LineChart& chart);

}  // namespace hpqf::observe
