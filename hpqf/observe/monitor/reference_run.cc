#include "hpqf/observe/monitor/reference_run.h"

#include <algorithm>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {

ReferenceRun ReferenceRun::parse(std::string_view text, std::string_view where) {
  constexpr size_t kMost = 1'000'000;
  ReferenceRun run;
  int64_t every = 1, index = 0;
  for (size_t end; !text.empty(); text.remove_prefix(std::min(end + 1, text.size()))) {
    end = std::min(text.find('\n'), text.size());
    const plan::Json line = plan::Json::parse(text.substr(0, end), nullptr, false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer() || !line.contains("loss") ||
        !line["loss"].is_number())
      continue;
    if (index++ % every != 0) continue;
    Point point{line["step"].get<int64_t>(), line["loss"].get<double>(), {}};
    if (line.contains("accuracy") && line["accuracy"].is_number()) point.accuracy = line["accuracy"].get<double>();
    if (!run.points_.empty() && point.step <= run.points_.back().step) continue;
    run.points_.push_back(point);
    if (run.points_.size() < kMost) continue;
    for (size_t i = 0; 2 * i < run.points_.size(); ++i) run.points_[i] = run.points_[2 * i];
    run.points_.resize((run.points_.size() + 1) / 2);
    every *= 2;
  }
  if (run.points_.empty())
    throw Error("a reference run without steps: " + std::string(where), "a metrics.jsonl with \"step\" and \"loss\"",
                "give the metrics.jsonl of a run folder");
  return run;
}

const ReferenceRun::Point* ReferenceRun::at(int64_t step) const {
  if (points_.empty() || step > points_.back().step) return nullptr;
  const auto after = std::ranges::upper_bound(points_, step, {}, &Point::step);
  return after == points_.begin() ? nullptr : &*std::prev(after);
}

std::optional<double> ReferenceRun::loss(int64_t step) const {
  const Point* point = at(step);
  return point ? std::optional(point->loss) : std::nullopt;
}

std::optional<double> ReferenceRun::accuracy(int64_t step) const {
  const Point* point = at(step);
  return point ? point->accuracy : std::nullopt;
}

}  // namespace hpqf::observe
