#include "hpqf/cost/run_log.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "hpqf/base/error.h"

namespace hpqf::cost {
namespace {

using Json = nlohmann::json;

std::optional<double> number(const Json& line, const char* key) {
  const auto it = line.find(key);
  if (it == line.end() || !it->is_number()) return std::nullopt;
  return it->get<double>();
}

class Reader {
 public:
  Reader(RunLog& log, double usual) : log_(log), usual_(usual) {}

  void add(const Json& line) {
    ++log_.lines;
    const int64_t step = line["step"].get<int64_t>();
    const bool again = !seen_.insert(step).second;
    const double samples = number(line, "samples").value_or(usual_);
    if (!(samples > 0)) ++log_.without_samples;
    const double inside = inside_seconds(line, samples);
    double wall = number(line, "wall_seconds").value_or(inside);
    if (wall < 0) ++log_.wrong_time, wall = 0;
    const double before = std::max(0.0, number(line, "repeated_seconds").value_or(0));
    log_.step_seconds += inside;
    log_.wall_seconds += wall + before;
    log_.repeated_seconds += before;
    if (again) {
      log_.repeated_seconds += wall;
      return;
    }
    ++log_.steps;
    log_.samples += samples;
    log_.samples_by_step.push_back(samples);
    if (const auto it = line.find("skipped"); it != line.end() && it->is_boolean() && it->get<bool>()) ++log_.skipped;
    if (const auto epoch = number(line, "epoch"); epoch && *epoch >= 0) begin(static_cast<int64_t>(*epoch), samples);
    if (const auto loss = number(line, "loss")) log_.loss.push_back({static_cast<double>(step), *loss});
  }

 private:
  double inside_seconds(const Json& line, double samples) {
    auto seconds = number(line, "seconds");
    if (!seconds) {
      const auto rate = number(line, "samples_per_second");
      if (rate && *rate > 0 && samples > 0) seconds = samples / *rate;
    }
    if (!seconds && !number(line, "wall_seconds")) ++log_.without_time;
    if (seconds && *seconds < 0) ++log_.wrong_time;
    return seconds && *seconds > 0 ? *seconds : 0;
  }

  void begin(int64_t epoch, double samples) {
    epochs_.insert(epoch);
    log_.epochs = static_cast<int64_t>(epochs_.size());
    if (epoch == *epochs_.begin()) first_epoch_ += samples;
    if (epochs_.size() > 1) log_.epoch_samples = first_epoch_;
  }

  RunLog& log_;
  double usual_, first_epoch_ = 0;
  std::set<int64_t> seen_, epochs_;
};

}  // namespace

RunLog read_run_log(std::string_view text, std::string_view where, double usual) {
  RunLog log;
  Reader reader(log, usual);
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool last = end == std::string_view::npos || end + 1 == text.size();
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json value = Json::parse(line, nullptr, false);
    if (value.is_object() && value.contains("step") && value["step"].is_number_integer()) {
      reader.add(value);
    } else if (last) {
      log.torn = true;
    } else {
      throw Error(fmt::format("{}, line {}: not a step", where, number),
                  "one JSON object with \"step\" a line, as hpqf train writes them (only the last may be cut)",
                  "correct or remove the line");
    }
  }
  return log;
}

}  // namespace hpqf::cost
