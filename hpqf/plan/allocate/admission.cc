#include "hpqf/plan/allocate/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::plan {
namespace {

constexpr std::array kNames = {"admitted", "doubtful", "forbidden", "unmeasured"};

Admission judge(const LayerSensitivity& layer, const FormatScore& score, const AdmissionThresholds& thresholds) {
  Admission a{layer.name, score.operand, score.format, Verdict::unmeasured, false, ""};
  if (!score.bias) {
    a.reason = "the bias of its weight gradient was not measured";
    return a;
  }
  const double loss = std::max(score.loss_change.value_or(0), 0.0), value = *score.bias + loss;
  const std::string sum = fmt::format("bias {:.3g} + loss change {:.3g} = {:.3g}", *score.bias, loss, value);
  if (value <= thresholds.admit) {
    a.verdict = Verdict::admitted;
    a.reason = fmt::format("{}, at most {}", sum, thresholds.admit);
  } else if (value <= thresholds.forbid) {
    a.verdict = Verdict::doubtful;
    a.reason = fmt::format("{}, between {} and {}", sum, thresholds.admit, thresholds.forbid);
  } else {
    a.verdict = Verdict::forbidden;
    a.reason = fmt::format("{}, above {}", sum, thresholds.forbid);
  }
  a.allowed = a.verdict == Verdict::admitted || (a.verdict == Verdict::doubtful && thresholds.doubtful);
  return a;
}

}  // namespace

const char* name(Verdict verdict) { return kNames[static_cast<size_t>(verdict)]; }

void check(const AdmissionThresholds& t) {
  if (!(t.admit >= 0 && t.admit <= t.forbid && std::isfinite(t.forbid)))
    throw Error(fmt::format("admission thresholds: admit {}, forbid {}", t.admit, t.forbid), "0 <= admit <= forbid",
                "use the defaults, 0.03 and 0.2");
}

std::vector<Admission> admit(const Sensitivity& sensitivity, const AdmissionThresholds& thresholds) {
  check(thresholds);
  check(sensitivity);
  std::vector<Admission> all;
  for (const LayerSensitivity& layer : sensitivity.layers)
    for (const FormatScore& score : layer.scores) all.push_back(judge(layer, score, thresholds));
  return all;
}

std::string to_json(const std::vector<Admission>& admissions) {
  Json list = Json::array();
  for (const Admission& a : admissions)
    list.push_back({{"layer", a.layer},
                    {"role", name(a.operand)},
                    {"format", formats::to_string(a.format)},
                    {"verdict", name(a.verdict)},
                    {"allowed", a.allowed},
                    {"reason", a.reason}});
  return list.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hpqf::plan
