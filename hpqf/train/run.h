// One call of train(): the loop around the steps, with its files, checkpoints and resume.
#pragma once
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "hpqf/train/gradient_monitor.h"
#include "hpqf/train/run_folder.h"
#include "hpqf/train/trainer.h"

namespace hpqf::train {

struct RunParts {
  std::shared_ptr<torch::nn::Module> module;
  Forward forward;
  LossFn loss;
  const engine::ModelDescription& description;
  PrecisionPlan requested;
  const TrainerOptions& options;
  TrainOptions train_options;
  Loader& loader;
  LossScaler& scaler;
  engine::Runtime& runtime;
  observe::Audit& audit;
  std::atomic<bool>& stop;
};

class Run {
 public:
  explicit Run(RunParts parts);  // opens the run folder; Error before any work
  TrainSummary run();

 private:
  void start();
  void resume(const std::string& checkpoint);
  bool measured() const;  // the plan is "auto": it comes from measurements on this machine
  int64_t settle_after() const;
  void measure_sensitivity();
  bool finished() const;
  std::vector<Batch> next_batches();  // of one optimizer step; empty at the end of an epoch
  void begin_epoch(int64_t epoch);
  void after_step(StepResult result);
  void start_monitors();
  void observe(const StepResult& result);
  void checkpoint();
  Schedule resolved_schedule() const;

  RunParts parts_;
  std::optional<RunFolder> folder_;
  std::optional<GradientMonitor> gradients_;
  std::optional<observe::Monitor> monitor_;
  std::optional<TrainStep> step_;
  std::vector<double> base_lr_;
  Schedule schedule_;
  int64_t epoch_ = 0;
  at::Tensor epoch_generator_;
  int64_t checkpointed_step_ = -1;
  TrainSummary summary_;
};

}  // namespace hpqf::train
