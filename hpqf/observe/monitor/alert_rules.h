// When to tell somebody: rules as data, judged by a pure function.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/monitor/monitor_row.h"

namespace hpqf::observe {

enum class Comparison : uint8_t { above, below, nonfinite };
enum class AlertAction : uint8_t {
  log,       // into the row
  warn,      // and to the user
  stop,      // and the training ends after this step, with a checkpoint
  callback,  // and the user's function is called
};
HPQF_API const char* name(Comparison comparison);
HPQF_API const char* name(AlertAction action);

// Raised when the metric is beyond the threshold in `samples` rows one after another. Quiet until it is over: beyond
// `clear` on the good side (hysteresis), and until `cool_down` rows have passed. A row without the metric changes
// nothing.
struct AlertRule {
  std::string rule;    // its name, unique
  std::string metric;  // as in the row; "quant/sqnr_db{*}" stands for every metric of that form
  Comparison comparison = Comparison::above;
  double threshold = 0;
  double clear = 0;  // equal to the threshold: no hysteresis. `nonfinite` uses neither
  int samples = 1;
  int cool_down = 0;
  AlertAction action = AlertAction::warn;
  std::string advice;  // what to do, for people
  bool operator==(const AlertRule&) const = default;
};

HPQF_API std::vector<AlertRule> default_alert_rules();
HPQF_API void check(const std::vector<AlertRule>& rules);  // Error naming the rule and what is impossible
// Schema "hpqf.alerts" version 1: {"rules": [{"rule","metric","comparison","threshold","clear","samples","cool_down",
// "action","advice"}]}; clear, samples, cool_down and advice may be left out.
HPQF_API std::string to_json(const std::vector<AlertRule>& rules, int indent = 1);
HPQF_API std::vector<AlertRule> alert_rules_from_json(std::string_view text, std::string_view where = "alerts");

struct AlertState {
  struct Track {
    int beyond = 0;  // rows one after another
    bool raised = false;
    int64_t since = 0;  // rows since it was raised
    bool operator==(const Track&) const = default;
  };
  std::map<std::string, Track> tracks;  // by rule and metric
  bool operator==(const AlertState&) const = default;
};

struct Alert {
  std::string rule, metric;
  double value = 0;
  AlertAction action = AlertAction::warn;
  std::string text;
};

struct AlertDecision {
  AlertState state;
  std::vector<Alert> alerts;
};
HPQF_API AlertDecision evaluate(const std::vector<AlertRule>& rules, AlertState state, const MonitorRow& row);

}  // namespace hpqf::observe
