#include "hpqf/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "hpqf/base/clock.h"

namespace hpqf::train {
namespace {

using Json = nlohmann::ordered_json;

double seconds_of(const Json& line, const char* key) {
  const auto it = line.find(key);
  return it != line.end() && it->is_number() ? std::max(0.0, it->get<double>()) : 0;
}

// Whole lines of steps up to `last`; the time of the others goes to the last of them, so that it is kept even if this
// process dies before its first step.
std::string kept_lines(std::string_view content, int64_t last) {
  constexpr const char* kRepeated = "repeated_seconds";
  std::string kept;
  size_t last_line = 0;
  double dropped = 0;
  while (!content.empty()) {
    const size_t end = content.find('\n');
    if (end == std::string_view::npos) break;  // torn
    const std::string_view line = content.substr(0, end + 1);
    content.remove_prefix(end + 1);
    const Json value = Json::parse(line, nullptr, false);
    if (!value.is_object() || !value.contains("step") || !value["step"].is_number_integer()) continue;
    if (value["step"].get<int64_t>() > last) {
      dropped += seconds_of(value, "wall_seconds") + seconds_of(value, kRepeated);
      continue;
    }
    last_line = kept.size();
    kept += line;
  }
  if (dropped == 0 || kept.empty()) return kept;
  Json value = Json::parse(kept.substr(last_line));
  value[kRepeated] = seconds_of(value, kRepeated) + dropped;
  return kept.substr(0, last_line) + value.dump() + "\n";
}

base::LineAppender open(const std::string& path, int64_t after_step) {
  if (after_step > 0 && std::filesystem::exists(path)) {
    base::atomic_write(path, kept_lines(base::read_file(path), after_step));
    return base::LineAppender(path);
  }
  return base::LineAppender(path, /*truncate=*/true);
}

void put_number(Json& line, const std::string& key, double value) {
  if (std::isfinite(value)) {
    line[key] = value;
    return;
  }
  line[key] = nullptr;
  line[key + "_text"] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

}  // namespace

std::string metrics_line(const StepResult& result, double wall_seconds) {
  Json line;
  line["step"] = result.step;
  line["epoch"] = result.epoch;
  put_number(line, "loss", result.loss);
  line["loss_scale"] = result.loss_scale;
  line["skipped"] = !result.applied;
  if (!result.cause.empty()) line["cause"] = result.cause;
  line["lr"] = result.lr;
  line["samples"] = result.samples;
  line["seconds"] = result.seconds;
  line["wall_seconds"] = wall_seconds;
  line["samples_per_second"] = result.samples_per_second();
  if (result.unix_seconds > 0) line["time"] = result.unix_seconds;
  if (result.grad_norm) put_number(line, "grad_norm", *result.grad_norm);
  line["plan_epoch"] = result.plan_epoch;
  if (!result.changes.empty()) line["changes"] = result.changes;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

observe::StepRecord step_record(const StepResult& result) {
  observe::StepRecord record;
  record.step = result.step;
  record.epoch = result.epoch;
  record.loss = result.loss;
  record.loss_scale = result.loss_scale;
  record.skipped = !result.applied;
  record.cause = result.cause;
  record.lr = result.lr;
  record.grad_norm = result.grad_norm;
  record.samples_per_second = result.samples_per_second();
  record.seconds = result.seconds;
  if (result.unix_seconds > 0) record.unix_seconds = result.unix_seconds;
  record.plan_epoch = result.plan_epoch;
  record.changes = result.changes;
  return record;
}

MetricsWriter::MetricsWriter(const std::string& path, int64_t after_step)
    : lines_(open(path, after_step)), last_ns_(base::steady_ns()) {}

void MetricsWriter::write(const StepResult& result) {
  const int64_t now = base::steady_ns();
  lines_.append(metrics_line(result, static_cast<double>(now - last_ns_) * 1e-9));
  last_ns_ = now;
}

}  // namespace hpqf::train
