// Which formats an operand may train in: noise averages out over steps, bias does not.
#pragma once
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/sensitivity.h"

namespace hpqf::plan {

// Of bias + max(loss_change, 0), where bias is the relative error of the weight gradient averaged over many batches.
// Measured on one small transformer (char-level Llama, 300 steps, two seeds): 0.03 and less showed no gap of the loss,
// 0.2 to 0.4 cost 0.006 to 0.04 nats, 0.9 and more cost 0.035 nats and more. A direction, not a law.
struct AdmissionThresholds {
  double admit = 0.03;    // up to here: trained in without a second thought
  double forbid = 0.2;    // above: never; between the two only when asked for
  bool doubtful = false;  // also take what lies between
};

enum class Verdict : uint8_t { admitted, doubtful, forbidden, unmeasured };
HPQF_API const char* name(Verdict verdict);

struct Admission {
  std::string layer;
  Operand operand = Operand::weight;
  BlockFormat format;
  Verdict verdict = Verdict::unmeasured;
  bool allowed = false;
  std::string reason;  // "bias 0.025 + loss change 0.001 = 0.026, at most 0.03"
};

// One for each entry of the sensitivity, in its order; entries without a bias are unmeasured and not allowed.
HPQF_API std::vector<Admission> admit(const Sensitivity& sensitivity, const AdmissionThresholds& thresholds = {});
HPQF_API void check(const AdmissionThresholds& thresholds);
HPQF_API std::string to_json(const std::vector<Admission>& admissions);

}  // namespace hpqf::plan
