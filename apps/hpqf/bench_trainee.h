// A copy of a reference model with its optimizer, that makes whole training steps in one precision.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "hpqf/engine/runtime.h"
#include "hpqf/observe/audit.h"
#include "hpqf/train/loader.h"
#include "models/registry.h"

namespace torch::optim {
class Optimizer;
}

namespace hpqf::app {

class Trainee {
 public:
  enum class Arithmetic : uint8_t { torch_fp32, torch_autocast /* bf16 */, plan };
  // Weights, optimizer and data are those of every other trainee of this model.
  Trainee(const models::ModelEntry& entry, const train::Batch& batch, Arithmetic arithmetic);
  Trainee(const models::ModelEntry& entry, const train::Batch& batch, PrecisionPlan plan);
  ~Trainee();

  void step();  // forward, loss, backward, optimizer
  // Two steps, between which an automatic plan is settled: its sentence of what was chosen, or "". Counting starts
  // after them.
  std::string warm_up();

  double loss() const { return loss_; }  // of the last step
  // What ran since the warm-up, as shares of the GEMM FLOPs; empty without a plan.
  std::vector<observe::AuditReport::Share> shares() const;

 private:
  at::Tensor forward_loss();

  const models::ModelEntry& entry_;
  train::Batch batch_;
  Arithmetic arithmetic_;
  models::Model model_;
  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  std::shared_ptr<observe::Audit> audit_;
  std::unique_ptr<engine::Runtime> runtime_;
  double loss_ = 0;
};

}  // namespace hpqf::app
