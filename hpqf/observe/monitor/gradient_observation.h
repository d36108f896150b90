// What one look at a tensor of a layer found: the row of gradients.jsonl and what the detector reads.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/kernels/tensor_stats.h"

namespace hpqf::observe {

// Which tensor. The gradient of a parameter has no role in a plan; it is measured against the format that the plan
// gives to the gradient GEMMs of its layer (wgrad), as what would happen if it were stored or sent in it.
enum class Subject : uint8_t {
  weight,       // the layer's parameters; against the plan's weight format
  gradient,     // of the layer's parameters, unscaled, before clipping; against wgrad
  output_grad,  // the gradient that enters the layer's backward, times the loss scale; against dgrad
  input_grad,   // the one that leaves it, times the loss scale; kept for recurrent layers, with its time steps
};
HPQF_API const char* name(Subject subject);
HPQF_API std::optional<Subject> find_subject(std::string_view name);

struct HPQF_API GradientObservation {
  int64_t step = 0;
  std::string layer;
  Subject subject = Subject::gradient;
  std::string format = "fp32";  // measured against
  int64_t elements = 0, nan = 0, infinite = 0;
  double norm = 0, max_abs = 0;  // of the finite values
  double mean = 0, deviation = 0;
  std::optional<double> kurtosis;      // 3 for a normal distribution; unset: all values equal
  double underflow = 0;                // share of the nonzero finite values that the format makes zero
  double overflow = 0;                 // share of the finite values that it cannot hold
  std::optional<double> sqnr_db;       // signal to quantisation noise; unset: not measured, or exact
  std::optional<double> update_ratio;  // 2-norm of the step's change over that of the weights; weight only
  std::vector<double> time_norms;      // per time step, first one first; input_grad only
  bool operator==(const GradientObservation&) const = default;
};

// Sets everything that the statistics say.
HPQF_API void fill(GradientObservation& observation, const kernels::TensorStats& stats);
// With the format's rounding known, its counts replace those against a range: they hold for any scale.
HPQF_API void fill(GradientObservation& observation, const kernels::QuantisationError& error, int64_t overflow);

// One JSON object without line break; a value that is not finite or not known is left out.
HPQF_API std::string to_json_line(const GradientObservation& observation);
HPQF_API GradientObservation observation_from_json(std::string_view line, std::string_view where);  // Error

}  // namespace hpqf::observe
