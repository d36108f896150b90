#include "hpqf/observe/monitor/gradient_detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

using plan::Json;
using plan::JsonObject;
using Track = DetectorState::Track;

constexpr std::array kNames = {"explosion", "vanishing", "nonfinite"};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::string place(const GradientObservation& o) {
  return fmt::format("{} of {}", name(o.subject), o.layer.empty() ? "the model" : "layer " + o.layer);
}

// What this observation shows, whether or not it was said before.
std::optional<Finding> look(const GradientObservation& o, const Track& track, const DetectorOptions& options) {
  Finding f{o.step, o.layer, o.subject, Trouble::nonfinite, 0, ""};
  if (o.nan + o.infinite > 0) {
    f.value = static_cast<double>(o.nan + o.infinite);
    f.text = fmt::format("{}: {} NaN and {} infinite values of {}", place(o), o.nan, o.infinite, o.elements);
    return f;
  }
  if (o.time_norms.size() > 1 && o.time_norms.back() > 0) {
    f.value = o.time_norms.front() / o.time_norms.back();
    if (f.value >= options.time_explode || f.value <= options.time_vanish) {
      f.trouble = f.value >= options.time_explode ? Trouble::explosion : Trouble::vanishing;
      f.text = fmt::format("{}: norm {:.3g} at the first of {} time steps, {:.3g} at the last", place(o),
                           o.time_norms.front(), o.time_norms.size(), o.time_norms.back());
      return f;
    }
  }
  if (static_cast<int>(track.norms.size()) < options.least_history) return std::nullopt;
  const double usual = median(track.norms);
  f.value = o.norm / usual;
  if (f.value < options.explode && f.value > options.vanish) return std::nullopt;
  f.trouble = f.value >= options.explode ? Trouble::explosion : Trouble::vanishing;
  f.text = fmt::format("{}: norm {:.3g} is {:.3g} times its median of {:.3g} over {} observations", place(o), o.norm,
                       f.value, usual, track.norms.size());
  return f;
}

bool over(const GradientObservation& o, const Track& track, const DetectorOptions& options) {
  if (o.nan + o.infinite > 0) return false;
  if (track.trouble == Trouble::nonfinite || track.norms.empty()) return true;
  if (o.time_norms.size() > 1 && o.time_norms.back() > 0) {
    const double ratio = o.time_norms.front() / o.time_norms.back();
    if (ratio >= options.time_explode || ratio <= options.time_vanish) return false;
  }
  const double ratio = o.norm / median(track.norms);
  return track.trouble == Trouble::explosion ? ratio < options.explode_over : ratio > options.vanish_over;
}

void require(bool good, const char* what, double value, const char* allowed) {
  if (!good) throw Error(fmt::format("{} {}", what, value), allowed, fmt::format("correct {}", what));
}

}  // namespace

const char* name(Trouble trouble) { return kNames[static_cast<size_t>(trouble)]; }

void check(const DetectorOptions& o) {
  require(o.window >= 3 && o.window <= 10'000, "window", o.window, "3 to 10000 observations");
  require(o.least_history >= 1 && o.least_history <= o.window, "least_history", o.least_history, "1 to the window");
  require(o.explode > 1 && std::isfinite(o.explode), "explode", o.explode, "a finite ratio over 1");
  require(o.explode_over >= 1 && o.explode_over <= o.explode, "explode_over", o.explode_over, "1 to explode");
  require(o.vanish > 0 && o.vanish < 1, "vanish", o.vanish, "a ratio between 0 and 1");
  require(o.vanish_over >= o.vanish && o.vanish_over <= 1, "vanish_over", o.vanish_over, "vanish to 1");
  require(o.cool_down >= 0, "cool_down", o.cool_down, "0 or more observations");
  require(o.time_explode > 1, "time_explode", o.time_explode, "a ratio over 1");
  require(o.time_vanish > 0 && o.time_vanish < 1, "time_vanish", o.time_vanish, "a ratio between 0 and 1");
}

Detection detect(DetectorState state, const std::vector<GradientObservation>& observations,
                 const DetectorOptions& options) {
  Detection result;
  for (const GradientObservation& o : observations) {
    if (o.subject == Subject::weight) continue;
    Track& track = state.tracks[fmt::format("{}:{}", name(o.subject), o.layer)];
    std::optional<Finding> found = look(o, track, options);
    if (track.raised) {
      ++track.since;
      const bool same = found && found->trouble == track.trouble;
      if (!same && track.since >= options.cool_down && over(o, track, options)) track.raised = false;
      // A worse kind of trouble is news whatever the cool-down says.
      const bool worse = found && found->trouble == Trouble::nonfinite && track.trouble != Trouble::nonfinite;
      if (!worse) found.reset();
    }
    if (found) {
      track.raised = true;
      track.trouble = found->trouble;
      track.since = 0;
      result.findings.push_back(std::move(*found));
    }
    if (o.nan + o.infinite == 0 && o.norm > 0) {
      track.norms.push_back(o.norm);
      if (static_cast<int>(track.norms.size()) > options.window) track.norms.erase(track.norms.begin());
    }
  }
  result.state = std::move(state);
  return result;
}

std::string DetectorState::to_json() const {
  Json json = Json::object();
  for (const auto& [key, t] : tracks)
    json[key] = {{"norms", t.norms}, {"raised", t.raised}, {"trouble", name(t.trouble)}, {"since", t.since}};
  return json.dump();
}

DetectorState DetectorState::from_json(std::string_view text) {
  const Json json = plan::parse_json(text, "detector state");
  DetectorState state;
  for (const auto& [key, value] : json.items()) {
    const JsonObject object(value, "detector state: " + key);
    Track& track = state.tracks[key];
    for (const Json& norm : object.array("norms")) {
      if (!norm.is_number())
        throw Error(object.place() + ": a norm that is no number", "numbers", "restore the record");
      track.norms.push_back(norm.get<double>());
    }
    track.raised = object.boolean("raised");
    track.since = object.integer("since", 0);
    const std::string trouble = object.text("trouble");
    const auto found = std::ranges::find(kNames, trouble);
    if (found == kNames.end())
      throw Error(object.place() + ": trouble " + trouble, "explosion, vanishing, nonfinite", "restore the record");
    track.trouble = static_cast<Trouble>(found - kNames.begin());
  }
  return state;
}

}  // namespace hpqf::observe
