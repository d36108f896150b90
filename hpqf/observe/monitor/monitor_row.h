// One row of monitor.jsonl: named numbers, and where those come from that were not measured.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::observe {

struct Metric {
  std::string name;
  double value = 0;
  std::string basis;  // "" measured; else why not: "estimated: 95 W of TDP given by the user", "given"
};

struct HPQF_API MonitorRow {
  int64_t step = 0, epoch = 0;
  double time = 0;  // seconds of wall clock since 1970, for joining with other logs; durations never come from it
  std::vector<Metric> metrics;
  std::vector<std::string> unknown;  // metrics that were wanted and could not be had
  std::vector<std::string> notes;    // what got worse since the last row, each once
  std::vector<std::string> alerts;

  void add(std::string name, double value, std::string basis = "");
  std::optional<double> find(std::string_view name) const;  // unset: not in this row
  // {"step","epoch","time","metrics":{},"basis":{},"unknown":[],"notes":[],"alerts":[]}; empty parts left out. A value
  // that is not finite is null plus "<name>_text".
  std::string to_json_line() const;
};

}  // namespace hpqf::observe
