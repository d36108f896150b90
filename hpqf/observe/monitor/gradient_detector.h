// Explosion and vanishing of gradients, from observations alone: a pure function on values.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/monitor/gradient_observation.h"

namespace hpqf::observe {

// Thresholds are ratios to the running median of the layer's own norm: a median does not move for one outlier, and
// every layer has its own scale. An alarm that was raised is not raised again before the ratio has come back through
// the second threshold and `cool_down` observations have passed.
struct DetectorOptions {
  int window = 21;                           // observations in the median
  int least_history = 5;                     // nothing is judged before
  double explode = 30, explode_over = 5;     // raised at or above; over again below
  double vanish = 1e-3, vanish_over = 1e-2;  // raised at or below; over again above
  int cool_down = 5;                         // observations
  // Recurrent layers: norm at the first time step over that at the last one, of the gradient of the input.
  double time_explode = 1e4, time_vanish = 1e-4;
  bool operator==(const DetectorOptions&) const = default;
};
HPQF_API void check(const DetectorOptions& options);  // Error naming what is impossible

enum class Trouble : uint8_t { explosion, vanishing, nonfinite };
HPQF_API const char* name(Trouble trouble);

struct Finding {
  int64_t step = 0;
  std::string layer;
  Subject subject = Subject::gradient;
  Trouble trouble = Trouble::explosion;
  double value = 0;  // the ratio, or the number of values that were not finite
  std::string text;  // for people: what, where, against what
};

struct HPQF_API DetectorState {
  struct Track {
    std::vector<double> norms;  // the newest at the end, at most `window`
    bool raised = false;
    Trouble trouble = Trouble::explosion;
    int64_t since = 0;  // observations since the alarm was raised
    bool operator==(const Track&) const = default;
  };
  std::map<std::string, Track> tracks;  // by subject and layer
  bool operator==(const DetectorState&) const = default;
  std::string to_json() const;                            // for checkpoints; exact
  static DetectorState from_json(std::string_view text);  // Error
};

struct Detection {
  DetectorState state;
  std::vector<Finding> findings;
};
// Subjects other than gradients are passed over. Norms that are zero, or whose tensor is not finite, do not enter the
// median.
HPQF_API Detection detect(DetectorState state, const std::vector<GradientObservation>& observations,
                          const DetectorOptions& options);

}  // namespace hpqf::observe
