// How much the loss suffers when one operand of one layer takes a format: what allocation reads. A value; whoever
// measures it needs torch, whoever reads it does not.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/operand.h"

namespace hpqf::plan {

// One operand in one format, all else at fp32.
struct FormatScore {
  Operand operand = Operand::weight;
  BlockFormat format;
  double score = 0;  // predicted change of the loss, nats, >= 0; infinity where the format gives non-finite values
  double standard_error = 0;  // standard error of `score`, nats
  double first_order = 0;     // E[g . delta], nats, signed; its own column: noise near a minimum, real in mid-training
  double first_order_stderr = 0;
  int64_t terms = 0;                  // independent terms in the mean: samples or tokens
  std::optional<double> omega;        // HAWQ-V2: mean Hessian trace x squared error of the weight
  std::optional<double> error;        // relative squared error of the operand, ||Q(x)-x||^2 / ||x||^2
  std::optional<double> bias;         // training: relative error of the mean weight gradient
  std::optional<double> loss_change;  // training: measured change of the loss, nats
  bool operator==(const FormatScore&) const = default;
};

struct Hessian {  // of one layer's weight block
  double top_eigenvalue = 0, trace = 0, trace_stderr = 0;
  int64_t probes = 0;
  bool operator==(const Hessian&) const = default;
};

struct LayerSensitivity {
  std::string name;
  LayerKind kind = LayerKind::other;
  int64_t weights = 0;  // elements of the weight operand
  int64_t inputs = 0;   // elements of the input operand for one sample
  int64_t macs = 0;     // multiply-adds for one sample
  std::optional<Hessian> hessian;
  std::vector<FormatScore> scores;  // any order; an operand and format at most once
  bool operator==(const LayerSensitivity&) const = default;
};

struct Sensitivity {
  std::string model;   // class name of the root
  std::string method;  // how the scores were made, for readers
  std::string labels;  // "sampled" from the model's own softmax, or "true"
  int64_t samples = 0;
  uint64_t seed = 0;
  std::vector<LayerSensitivity> layers;  // definition order
  // Layers that must take the same formats: branches that a residual addition joins, query-key-value, a shared weight.
  std::vector<std::vector<std::string>> ties;
  // Producer and consumer: a conversion costs time where their formats differ.
  std::vector<std::pair<std::string, std::string>> edges;
  bool operator==(const Sensitivity&) const = default;
};

// nullptr when there is none.
HPQF_API const LayerSensitivity* find_layer(const Sensitivity& sensitivity, std::string_view name);
HPQF_API const FormatScore* find_score(const LayerSensitivity& layer, Operand operand, const BlockFormat& format);

// Error naming the layer: negative or NaN scores, a layer or entry twice, a tie or edge that names no layer, a layer in
// two ties.
HPQF_API void check(const Sensitivity& sensitivity);

// Schema "hpqf.sensitivity" version 1. The round trip is exact; an infinite score is null. One score a line.
HPQF_API std::string to_json(const Sensitivity& sensitivity);
HPQF_API Sensitivity sensitivity_from_json(std::string_view text, std::string_view where = "sensitivity");
HPQF_API Sensitivity load_sensitivity(const std::string& path);

}  // namespace hpqf::plan
