// Another run's metrics.jsonl, to compare the loss with.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::observe {

class HPQF_API ReferenceRun {
 public:
  ReferenceRun() = default;
  // Lines with "step" and "loss" (and "accuracy", if any); torn and foreign lines are passed over. At most a million
  // steps are kept: of longer runs every n-th. Error when there is no usable line.
  static ReferenceRun parse(std::string_view jsonl, std::string_view where);

  bool empty() const { return points_.empty(); }
  std::optional<double> loss(
      int64_t step) const;  // of the nearest kept step at or before; unset: before the first or after the last
  std::optional<double> accuracy(int64_t step) const;

 private:
  struct Point {
    int64_t step;
    double loss;
    std::optional<double> accuracy;
  };
  const Point* at(int64_t step) const;
  std::vector<Point> points_;
};

}  // namespace hpqf::observe
