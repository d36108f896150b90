// Everything `hpqf train` can be told, as one value; it is also the run folder's config.json.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "apps/hpqf/settings.h"

namespace CLI {
class App;
}

namespace hpqf::app {

struct TrainConfig {
  std::string model, data;
  std::string precision = "bf16";
  std::vector<std::string> sensitive;
  std::string plan;  // a file; instead of precision and sensitive
  std::string optimizer = "adamw", schedule = "constant";
  double lr = 0, momentum = 0, weight_decay = 0, clip = 0;
  int64_t warmup = 0;
  int64_t batch_size = 0, accumulate = 1, epochs = 0, steps = 0, limit = 0;
  std::string loss_scale;  // a number, "dynamic", "off"; "": as the plan needs
  bool range_compensation = false;
  std::string strict;  // "", "formats", "native"
  uint64_t seed = 0;
  int threads = 0;  // 0: as many as torch chooses
  int64_t checkpoint_every = 0, eval_every = 0;
  int64_t monitor_gradients = 0, monitor = 0;  // steps between looks and rows; 0: none
  std::string alerts, reference;               // files: alert rules, metrics.jsonl of another run
  double price_per_hour = 0;                   // 0: unknown

  // Of this call only: not part of config.json.
  std::string out, config, prometheus;
  std::vector<std::string> exports;  // as observe::make_exporter takes them
  bool resume = false, quiet = false;
};

void add_options(CLI::App& command, TrainConfig& config);

// What a model is trained with when nobody says otherwise. Error when the model is unknown.
Settings model_defaults(const std::string& model);

// Error naming the option whose value is impossible.
void check(const TrainConfig& config);

// Schema "hpqf.run" version 1. Its keys are the names of the options, so the file is also one that --config reads.
std::string to_json(const TrainConfig& config);

// The same settings as text, in the same order, for people and exporters.
std::vector<std::pair<std::string, std::string>> settings_text(const TrainConfig& config);

}  // namespace hpqf::app
