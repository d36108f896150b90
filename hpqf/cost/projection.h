// How many steps until a metric reaches a target: a saturating power law through what was seen so far.
//
//   y(n) = a + b n^-c,  b > 0, c > 0        (a metric that should rise is turned around first)
//
// The form is that of learning curves and scaling laws (Hestness et al., "Deep Learning Scaling is Predictable,
// Empirically", 2017). It says nothing about learning-rate decay to come, restarts, or other data.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/cost/figure.h"

namespace hpqf::cost {

struct CurvePoint {
  double step = 0;   // from 1
  double value = 0;  // NaN and infinity are passed over
};

struct HPQF_API PowerLaw {
  double a = 0, b = 0, c = 0;
  double sigma = 0;  // robust spread of the residuals: 1.4826 x median magnitude
  double at(double step) const;
  double step_for(double value) const;  // infinity when it is never reached
};

struct ProjectionOptions {
  bool lower_is_better = true;
  uint64_t seed = 0;
  int resamples = 200;
  double farthest = 20;  // times the last step: beyond that no answer is given
  double widest = 10;    // the band's high over its low: beyond that no answer is given
};

enum class Outlook : uint8_t {
  reached,      // `steps` is where the smoothed curve first passed the target
  projected,    // `steps` is the median and the 80 % interval of the resampled fits
  cannot_tell,  // `reason` says what is missing
};
HPQF_API const char* name(Outlook outlook);

struct Projection {
  Outlook outlook = Outlook::cannot_tell;
  Band steps;
  PowerLaw fit;  // of the metric turned to "lower is better"; zeros when nothing was fitted
  std::string reason;
};

// Deterministic: the same points, options and seed give the same bits. Points need not be sorted; steps that repeat (a
// resumed run) count twice. At most 64 medians over geometrically growing ranges of steps within the last factor of 100
// are fitted, so single outliers do not matter.
HPQF_API Projection project(std::span<const CurvePoint> points, double target, const ProjectionOptions& options = {});

}  // namespace hpqf::cost
