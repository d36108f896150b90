// What a run tells about itself as it goes: the values that exporters and the report work with.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::observe {

// One optimizer step: a line of metrics.jsonl.
struct StepRecord {
  int64_t step = 0;   // the first is 1
  int64_t epoch = 0;  // from 0
  double loss = 0;    // may be NaN or infinite
  double loss_scale = 1;
  bool skipped = false;
  std::string cause;  // why it was skipped
  std::optional<double> lr;
  std::optional<double> grad_norm;  // may be NaN or infinite
  std::optional<double> samples_per_second;
  std::optional<double> seconds;       // wall time of the step, data loading not included
  std::optional<double> unix_seconds;  // wall clock at the end of the step
  int64_t plan_epoch = 0;
  std::vector<std::string> changes;  // what was decided after the step, with reasons
};

// One pass over data the model is not trained on: a line of evaluations.jsonl.
struct EvaluationRecord {
  int64_t step = 0, epoch = 0;
  double loss = 0;
  std::optional<double> accuracy;  // 0 to 1
  int64_t samples = 0;
  std::optional<double> unix_seconds;
};

// What is known before the first step.
struct RunInfo {
  std::string name;                                           // of the run, e.g. the name of its folder
  std::string model, data, precision;                         // as they were asked for; "" when nobody said
  int64_t batch_size = 0;                                     // 0: not known
  int64_t tokens_per_sample = 0;                              // 0: samples are not made of tokens
  int64_t resumed_from = 0;                                   // steps that were there already
  double unix_seconds = 0;                                    // wall clock at the start
  std::vector<std::pair<std::string, std::string>> settings;  // all of config.json, in its order
};

// What is known after the last step.
struct RunEnd {
  int64_t steps = 0, skipped = 0;
  bool complete = true;  // false: stopped before the end
  double unix_seconds = 0;
};

// A line of metrics.jsonl or evaluations.jsonl. Empty when the line is no JSON object with a whole "step"; unknown keys
// are ignored and a known key of another type counts as absent, so that files of other versions can be read.
HPQF_API std::optional<StepRecord> parse_step(std::string_view line);
HPQF_API std::optional<EvaluationRecord> parse_evaluation(std::string_view line);

// Schema as in hpqf/train/metrics.h: a non-finite loss is null plus "loss_text".
HPQF_API std::string evaluation_line(const EvaluationRecord& evaluation);

}  // namespace hpqf::observe
