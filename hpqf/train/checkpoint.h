// One file holds everything a run needs to continue bit-equal. Layout: safetensors (train/tensor_file.h).
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"
#include "hpqf/plan/fallback.h"
#include "hpqf/plan/loss_scale.h"
#include "hpqf/plan/plan.h"
#include "hpqf/train/loader.h"
#include "hpqf/train/schedule.h"
#include "hpqf/train/step.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace hpqf::train {

// The state of a run beside its model and its optimizer.
struct Snapshot {
  StepCounters counters;
  LoaderState position;
  plan::LossScaleState loss_scale;
  plan::FallbackState fallback;
  plan::RangeState ranges;
  PrecisionPlan plan;       // in force
  PrecisionPlan requested;  // what the user asked for; differs from `plan` after a fallback
  Schedule schedule;
  std::vector<double> base_lr;
  observe::AuditReport audit;  // of the steps so far
  at::Tensor generator;        // state of torch's default CPU generator (uint8)
  at::Tensor epoch_generator;  // ... when the epoch began, for loaders that draw their order from it; may be undefined
};

// Writes atomically: at any moment `path` is absent, the old file, or the whole new one.
HPQF_API void save_checkpoint(const std::string& path, const Snapshot& snapshot, const torch::nn::Module& model,
                              const torch::optim::Optimizer& optimizer);

// Checks everything first (checksums, schema, every name, shape and dtype against the model and the optimizer), then
// copies. On Error neither model nor optimizer has changed; it names the tensor or key that is wrong.
HPQF_API Snapshot load_checkpoint(const std::string& path, torch::nn::Module& model,
                                  torch::optim::Optimizer& optimizer);
// The weights and buffers alone, under the same checks.
HPQF_API void load_model(const std::string& path, torch::nn::Module& model);
// The same checks that need no model.
HPQF_API Snapshot read_snapshot(const std::string& path);

// `dir`/step-00001200.safetensors, the newest `keep` of them.
class HPQF_API CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string dir, int keep = 2);  // creates nothing
  std::string path(int64_t step) const;
  std::vector<int64_t> steps() const;  // ascending; empty when the folder does not exist
  // Writes the checkpoint of snapshot.counters.step, then removes what is older than the newest `keep`. Returns its
  // path.
  std::string save(const Snapshot& snapshot, const torch::nn::Module& model,
                   const torch::optim::Optimizer& optimizer) const;
  // Path of the newest, nothing when there is none. Error when it does not verify; says which older ones are intact.
  std::optional<std::string> newest() const;

 private:
  std::string dir_;
  int keep_;
};

// torch's default CPU generator.
HPQF_API at::Tensor generator_state();
HPQF_API void set_generator_state(const at::Tensor& state);
HPQF_API void seed_generator(uint64_t seed);  // what torch::manual_seed does for the CPU

}  // namespace hpqf::train
