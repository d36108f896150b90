// Dynamic loss scale as a pure state machine. What has tensors (scaling, unscaling, attribution) is
// train/loss_scaler.h.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"

namespace hpqf::plan {

struct LossScaleOptions {
  double init = 65536.0;  // 2^16
  double growth = 2.0;
  double backoff = 0.5;
  double floor = 1.0;               // never under: a scale below 1 only loses gradient bits (pytorch #40497)
  double cap = 16777216.0;          // 2^24: never over, a tiny loss cannot drive it to infinity (pytorch #98828)
  int64_t growth_interval = 2000;   // clean steps before growing
  int64_t recovery_interval = 100;  // ... while below the highest scale that worked, after a backoff
  int hysteresis = 2;               // consecutive bad steps before backing off; the first `hysteresis - 1` only skip
  bool enabled = true;              // false: scale is 1 for ever, bad steps are still skipped
};

struct LossScaleState {  // all of it goes into checkpoints; equality is exact
  double scale = 65536.0;
  int64_t clean_steps = 0;  // since the last change or bad step
  int bad_steps = 0;        // consecutive
  double best_scale = 0;    // highest scale at which a whole growth_interval was clean; lowered when it fails again
  int64_t skipped_total = 0;
  bool operator==(const LossScaleState&) const = default;
};

struct LossScaleChange {
  LossScaleState state;
  std::string reason;  // "" when the scale stays
};

HPQF_API void check(
    const LossScaleOptions& options);  // Error on impossible numbers; growth = backoff = 1 is a static scale
HPQF_API LossScaleState initial(const LossScaleOptions& options);
// Pure: what the state becomes after a step whose gradients were finite or not.
HPQF_API LossScaleChange update(const LossScaleState& state, bool finite, const LossScaleOptions& options);

// Round trip is exact, bit for bit. Error with the place on anything else than such a record.
HPQF_API std::string to_json(const LossScaleState& state);
HPQF_API LossScaleState loss_scale_state_from_json(std::string_view text, std::string_view where = "loss scale state");

}  // namespace hpqf::plan
