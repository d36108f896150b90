#include "hpqf/observe/monitor/monitor_row.h"

#include <cmath>

#include "hpqf/plan/json.h"

namespace hpqf::observe {

void MonitorRow::add(std::string name, double value, std::string basis) {
  metrics.push_back({std::move(name), value, std::move(basis)});
}

std::optional<double> MonitorRow::find(std::string_view name) const {
  for (const Metric& metric : metrics)
    if (metric.name == name) return metric.value;
  return std::nullopt;
}

std::string MonitorRow::to_json_line() const {
  plan::Json json{{"step", step}, {"epoch", epoch}, {"time", time}};
  plan::Json values = plan::Json::object(), bases = plan::Json::object();
  for (const Metric& metric : metrics) {
    if (std::isfinite(metric.value)) {
      values[metric.name] = metric.value;
    } else {
      values[metric.name] = nullptr;
      values[metric.name + "_text"] = std::isnan(metric.value) ? "nan" : metric.value > 0 ? "inf" : "-inf";
    }
    if (!metric.basis.empty()) bases[metric.name] = metric.basis;
  }
  json["metrics"] = std::move(values);
  if (!bases.empty()) json["basis"] = std::move(bases);
  if (!unknown.empty()) json["unknown"] = unknown;
  if (!notes.empty()) json["notes"] = notes;
  if (!alerts.empty()) json["alerts"] = alerts;
  return json.dump(-1, ' ', false, plan::Json::error_handler_t::replace);
}

}  // namespace hpqf::observe
