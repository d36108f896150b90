// Fallback along a ladder of formats: a layer in numeric trouble goes up one format, and comes back after calm. What
// fallback.h does for overflow alone, for every cause that statistics can show.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/policy/change.h"
#include "hpqf/plan/policy/rungs.h"

namespace hpqf::plan {

// Statistics of one operand of one layer in one step.
struct OperandHealth {
  std::string layer;
  Operand operand = Operand::input;
  int64_t elements = 0;
  int64_t nonfinite = 0;          // finite before the cast, NaN or infinity after it
  int64_t saturated = 0;          // clipped to the largest value
  int64_t underflow = 0;          // not zero before, zero after
  std::optional<double> sqnr_db;  // signal to quantisation noise, decibels
  std::optional<double> drift;    // relative distance of a watched statistic from its reference, >= 0
  bool operator==(const OperandHealth&) const = default;
};

// The soft limit must be broken `patience` steps in a row; the hard one acts at once.
struct Limit {
  double soft = 0, hard = 0;
  bool operator==(const Limit&) const = default;
};

enum class Scope : uint8_t {
  layer,    // trouble in one operand raises all operands of the layer
  operand,  // ... that operand alone
  dgrad,    // only dgrad is ever raised, by its own trouble
  wgrad     // only wgrad
};

struct LadderRules {
  bool enabled = true;
  Scope scope = Scope::layer;
  Limit saturation{0.01, 0.1};  // share of the elements
  Limit underflow{0.3, 0.8};    // share of the elements
  Limit sqnr_db{10, 3};         // below: 10 dB is noise of a tenth of the signal's power
  Limit drift{0.5, 2};
  int64_t patience = 3;           // steps in a row above a soft limit
  int64_t gradient_patience = 8;  // ... with non-finite gradients: normally the loss scale's business
  int64_t cool_down = 20;         // steps after a change in which soft limits do not count
  int64_t calm = 200;             // calm steps in a row before one format is given back
  double release = 0.5;           // calm: shares and drift below this part of the soft limits, noise too
  int64_t calm_most = 1'000'000;  // `calm` doubles with each relapse, up to here
  // Where each format goes. Block scales become the default ones of the new format.
  Rungs ladder = default_rungs();
};

// The one number that users set: a share of clipped or flushed elements beyond which a layer falls back.
HPQF_API LadderRules with_fallback_threshold(LadderRules rules, double share);
HPQF_API void check(const LadderRules& rules);  // Error; a ladder that goes round in circles too

struct LadderTrack {
  std::map<Operand, std::vector<std::string>> path;  // formats an operand has left, the first is its home
  std::map<Operand, std::string> now;                // where the policy put it
  int64_t strikes = 0;                               // steps in a row above a soft limit
  int64_t calm_steps = 0;                            // in a row
  int64_t calm_needed = 0;                           // 0 until the first rise
  int64_t since_change = 0;
  bool came_back = false;  // a rise after this is a relapse
  bool operator==(const LadderTrack&) const = default;
};
struct LadderState {                          // goes into checkpoints
  std::map<std::string, LadderTrack> tracks;  // "LAYER" with Scope::layer, "LAYER operand" otherwise
  bool operator==(const LadderState&) const = default;
};

struct LadderDecision {
  PrecisionPlan plan;
  LadderState state;
  std::vector<PolicyChange> changes;
};

// Pure. A layer without a record in `health` had a calm step. An operand that something else than this policy changed
// is forgotten. Never flaps: giving back a format needs `calm` steps in a row, twice as many after each relapse. With a
// ladder of L rungs each doubling sees at most L rises and L returns, so N steps move a track at most
// 2 L (log2(N / calm + 1) + 1) times, whatever the signal does (until calm_most).
HPQF_API LadderDecision react(const PrecisionPlan& plan, const LadderState& state, int64_t step,
                              std::span<const OperandHealth> health, const LadderRules& rules);

// Round trips are exact. Error with the place.
HPQF_API std::string to_json(const LadderState& state);
HPQF_API LadderState ladder_state_from_json(std::string_view text, std::string_view where = "ladder state");
HPQF_API std::string to_json(std::span<const OperandHealth> health);
HPQF_API std::vector<OperandHealth> health_from_json(std::string_view text, std::string_view where = "health");
HPQF_API std::string to_json(const LadderRules& rules);
HPQF_API LadderRules ladder_rules_from_json(std::string_view text, std::string_view where = "ladder rules");

}  // namespace hpqf::plan
