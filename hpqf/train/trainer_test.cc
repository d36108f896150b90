#include "hpqf/train/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "hpqf/base/file.h"
#include "hpqf/engine/auto_choice.h"
#include "hpqf/engine/auto_plan.h"
#include "hpqf/train/checkpoint.h"
#include "hpqf/train/fixtures_test.h"

namespace hpqf::train {
namespace {

struct Scene {
  explicit Scene(std::string precision = "fp16") {
    torch::manual_seed(7);
    model = Mlp(0.3);
    options.precision = std::move(precision);
    options.seed = 5;
  }
  TensorLoader loader() const { return TensorLoader(data.x, data.y, {.batch_size = 8, .seed = 2, .n_classes = 3}); }
  TrainOptions sgd(int64_t steps) const {
    return {.steps = steps, .optimizer_spec = {.name = "sgd", .lr = 0.05, .momentum = 0.9}};
  }
  Data data = small_data();
  Mlp model{nullptr};
  TrainerOptions options;
};

std::vector<std::string> metric_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream content(base::read_file(path));
  for (std::string line; std::getline(content, line);) {
    nlohmann::json j = nlohmann::json::parse(line);
    // Time is the only thing that is not a function of the data.
    for (const char* key : {"seconds", "wall_seconds", "repeated_seconds", "samples_per_second", "time"}) j.erase(key);
    lines.push_back(j.dump());
  }
  return lines;
}

TEST(Trainer, LearnsInTwoLines) {
  for (const char* precision : {"fp32", "bf16", "fp16", "fp8", "int8"}) {
    Scene s(precision);
    TensorLoader loader = s.loader();
    MixedPrecisionTrainer trainer(s.model,
                                  {.precision = precision, .sensitive_layers = {"fc2"}, .optimizer_precision = "fp32"});
    const double before = trainer.evaluate(loader, cross_entropy).loss;
    const TrainSummary summary = trainer.train(loader, cross_entropy, {.epochs = 20});
    const EvalResult after = trainer.evaluate(loader);
    EXPECT_EQ(summary.steps, 140);  // 7 batches, the last of 2 samples
    EXPECT_LT(after.loss, before * 0.9) << precision;
    EXPECT_EQ(after.samples, 50);
    EXPECT_GT(*after.accuracy, 0.5);
    EXPECT_TRUE(s.model->is_training());
    EXPECT_EQ(trainer.plan().at("fc2", plan::LayerKind::linear).weight.format, Format::fp32);
    EXPECT_GT(trainer.audit().rows.size(), 0);
    EXPECT_EQ(trainer.audit().steps, 140);
  }
}

TEST(Trainer, TakesHoldersPointersHandlesAndRanges) {
  Scene s;
  std::vector<std::pair<at::Tensor, at::Tensor>> range{{s.data.x, s.data.y}};
  const auto train_once = [&](MixedPrecisionTrainer& trainer) {
    EXPECT_EQ(trainer.train(range, cross_entropy, {.epochs = 2}).applied, 2);
  };
  torch::nn::Sequential sequential(torch::nn::Linear(8, 3));
  auto pointer = std::make_shared<MlpImpl>();
  MixedPrecisionTrainer a(s.model), b(sequential), c(pointer),
      d(ModelHandle{pointer, [&](const at::Tensor&x) { return pointer->forward(x); }});
  train_once(a);
  train_once(b);
  train_once(c);
  train_once(d);
}

std::vector<std::string> audit_without_times(const std::string& run) {
  const auto report = observe::AuditReport::from_json(base::read_file(run + "/audit.json"));
  std::vector<std::string> lines{fmt::format("{} steps", report.steps)};
  for (const observe::AuditRow& r : report.rows)
    lines.push_back(fmt::format("{} {} {} {} {} {} {} {}", r.layer, r.op, observe::name(r.pass), r.effective_a,
                                r.effective_b, r.calls, r.flops, r.bytes));
  return lines;
}

// Loss scale, plan, momentum, dropout, order of the data and counters: all of it decides the next 100 losses.
TEST(Trainer, ResumedRunIsBitEqual) {
  for (const char* precision : {"fp16", "int8"}) {
    for (const int64_t at : {5, 7, 23}) {  // inside an epoch, at its end, later
      const Folder folder;
      const auto run = [&](const std::string& dir, int64_t steps, bool resume) {
        Scene s(precision);
        s.options.accumulate_steps = 1;
        s.options.loss_scale = plan::LossScaleOptions{.init = 256, .growth_interval = 7};
        TensorLoader loader = s.loader();
        TrainOptions options = s.sgd(steps);
        options.out_dir = dir;
        options.resume = resume;
        options.schedule = {.kind = ScheduleKind::cosine, .warmup_steps = 3, .total_steps = 200};
        MixedPrecisionTrainer trainer(s.model, s.options);
        const TrainSummary summary = trainer.train(loader, cross_entropy, options);
        EXPECT_EQ(summary.resumed_from, resume ? at : 0);
        EXPECT_TRUE(summary.notes.empty() || summary.notes[0].starts_with("step")) << summary.notes[0];
        return torch::cat({s.model->fc1->weight.flatten(), s.model->fc2->weight.flatten()}).detach();
      };
      const at::Tensor whole = run(folder / "whole", at + 100, false);
      run(folder / "cut", at, false);
      torch::manual_seed(12345);  // another process would start anywhere
      const at::Tensor resumed = run(folder / "cut", at + 100, true);
      EXPECT_TRUE(whole.equal(resumed)) << precision << " at " << at;
      EXPECT_EQ(metric_lines(folder / "whole/metrics.jsonl"), metric_lines(folder / "cut/metrics.jsonl"));
      EXPECT_EQ(audit_without_times(folder / "whole"), audit_without_times(folder / "cut"));
    }
  }
}

// Measuring takes batches and random numbers; the training sees none of it.
TEST(Trainer, AutoMeasuresBeforeItChoosesAndDisturbsNothing) {
  const auto losses = [](const std::string& precision, std::vector<std::string>& notes) {
    Scene s(precision);
    TensorLoader loader = s.loader();
    TrainOptions options = s.sgd(40);
    std::vector<double> seen;
    options.on_step = [&](const StepResult& r) { seen.push_back(r.loss); };
    MixedPrecisionTrainer trainer(s.model, s.options);
    notes = trainer.train(loader, cross_entropy, options).notes;
    EXPECT_FALSE(engine::unsettled(trainer.plan()));
    return seen;
  };
  std::vector<std::string> notes, none;
  const std::vector<double> fp32 = losses("fp32", none), chosen = losses("auto", notes);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(fp32[i], chosen[i]) << "step " << i + 1;  // a tenth of the run
  const std::string text = fmt::format("{}", fmt::join(notes, "\n"));
  EXPECT_NE(text.find("auto: layers measured and chosen"), std::string::npos) << text;
  if (!engine::auto_formats().empty()) {
    EXPECT_NE(text.find("sensitivity measured on"), std::string::npos) << text;
    EXPECT_NE(text.find("predicted change of the loss"), std::string::npos) << text;
  }
}

TEST(Trainer, ResumeOverARangeThatDrawsFromTorch) {
  // Like a torch::data loader with a random sampler: begin() draws the order from torch's generator.
  struct Shuffled {
    const Data& data;
    std::vector<std::pair<at::Tensor, at::Tensor>> batches;
    auto begin() {
      const at::Tensor order = torch::randperm(data.x.size(0));
      batches.clear();
      for (const at::Tensor& part : order.split(8))
        batches.emplace_back(data.x.index_select(0, part), data.y.index_select(0, part));
      return batches.begin();
    }
    auto end() { return batches.end(); }
  };
  const Folder folder;
  const auto run = [&](const std::string& dir, int64_t steps, bool resume) {
    Scene s("bf16");
    Shuffled range{s.data, {}};
    TrainOptions options = s.sgd(steps);
    options.out_dir = dir;
    options.resume = resume;
    MixedPrecisionTrainer(s.model, s.options).train(range, cross_entropy, options);
  };
  run(folder / "whole", 40, false);
  run(folder / "cut", 17, false);
  run(folder / "cut", 40, true);
  EXPECT_EQ(metric_lines(folder / "whole/metrics.jsonl"), metric_lines(folder / "cut/metrics.jsonl"));
}

// ultralytics PR #22189: a killed fp16 run continues as if nothing had happened.
TEST(Trainer, KillAndResumeFp16RunBitEqual) {
  const Folder folder;
  const auto run = [&](const std::string& dir, bool resume) {
    Scene s("fp16");
    TensorLoader loader = s.loader();
    TrainOptions options = s.sgd(400);
    options.out_dir = dir;
    options.resume = resume;
    options.checkpoint_every = 3;
    MixedPrecisionTrainer(s.model, s.options).train(loader, cross_entropy, options);
  };
  run(folder / "whole", false);
  bool resume = false;
  int kills = 0;
  for (int round = 0; round < 6; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      at::set_num_threads(1);  // the parent's thread pool does not survive a fork
      run(folder / "cut", resume);
      _exit(0);
    }
    // Killed once there is something to resume from; the moment itself is anywhere in a step or a write.
    const auto enough = [&] { return !CheckpointFolder(folder / "cut/checkpoints").steps().empty(); };
    int status = 0;
    for (int i = 0; i < 20000 && !enough() && waitpid(child, &status, WNOHANG) == 0; ++i) usleep(1000);
    usleep(20000 + 7300 * round);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    kills += WIFSIGNALED(status);
    resume = true;
  }
  EXPECT_GT(kills, 0);
  run(folder / "cut", true);
  EXPECT_EQ(metric_lines(folder / "whole/metrics.jsonl"), metric_lines(folder / "cut/metrics.jsonl"));
}

TEST(Trainer, RunFolderHoldsPlanMetricsAuditAndCheckpoints) {
  const Folder folder;
  Scene s;
  TensorLoader loader = s.loader();
  TrainOptions options = s.sgd(10);
  options.out_dir = folder / "a/b";
  options.checkpoint_every = 2;
  int64_t seen = 0;
  options.on_step = [&](const StepResult& r) { EXPECT_EQ(r.step, ++seen); };
  MixedPrecisionTrainer trainer(s.model, s.options);
  const TrainSummary summary = trainer.train(loader, cross_entropy, options);
  EXPECT_EQ(seen, 10);
  EXPECT_EQ(metric_lines(folder / "a/b/metrics.jsonl").size(), 10);
  EXPECT_EQ(PrecisionPlan::load(folder / "a/b/plan.json"), trainer.plan());
  EXPECT_EQ(observe::AuditReport::from_json(base::read_file(folder / "a/b/audit.json")).steps, 10);
  EXPECT_EQ(CheckpointFolder(folder / "a/b/checkpoints").steps(), (std::vector<int64_t>{8, 10}));
  EXPECT_EQ(summary.checkpoint, folder / "a/b/checkpoints/step-00000010.safetensors");
  EXPECT_ERROR(trainer.train(loader, cross_entropy, options), "which holds one");
  std::ofstream(folder / "file") << "x";
  options.out_dir = folder / "file/run";
  EXPECT_ERROR(trainer.train(loader, cross_entropy, options), "file/run");
  options.out_dir = folder / "none";
  options.resume = true;
  EXPECT_ERROR(trainer.train(loader, cross_entropy, options), "to resume from");
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST(Trainer, ResumeRefusesAnotherPlanModelOptimizerOrData) {
  const Folder folder;
  const auto run = [&](Scene s, bool resume, std::function<void(TrainOptions&)> change = nullptr) {
    TensorLoader loader = s.loader();
    TrainOptions options = s.sgd(resume ? 9 : 6);
    options.out_dir = folder.path() + "/run";
    options.resume = resume;
    if (change) change(options);
    MixedPrecisionTrainer(s.model, s.options).train(loader, cross_entropy, options);
  };
  run(Scene(), false);
  EXPECT_ERROR(run(Scene("bf16"), true), "another plan");
  Scene wider;
  wider.model = Mlp(0.3, 17);
  EXPECT_ERROR(run(wider, true), "'fc1.weight' is Float [16, 8] in the file and Float [17, 8] in the model");
  EXPECT_ERROR(run(Scene(), true, [](TrainOptions& o) { o.optimizer_spec.name = "adamw"; }), "'sgd'");
  Scene other;
  other.data = small_data(51);
  EXPECT_ERROR(run(other, true), "50 samples");
  run(Scene(), true);
}

TEST(Trainer, StopsWithACheckpointAndCanEvaluateInside) {
  const Folder folder;
  Scene s;
  TensorLoader loader = s.loader();
  MixedPrecisionTrainer trainer(s.model, s.options);
  TrainOptions options = s.sgd(1000);
  options.out_dir = folder / "run";
  options.on_step = [&](const StepResult& r) {
    EXPECT_EQ(trainer.evaluate(loader).samples, 50);  // the very loader that is being trained on
    if (r.step == 11) trainer.request_stop();
    EXPECT_ERROR(trainer.train(loader, cross_entropy), "train() inside train()");
  };
  const TrainSummary summary = trainer.train(loader, cross_entropy, options);
  EXPECT_TRUE(summary.stopped);
  EXPECT_EQ(summary.steps, 11);
  EXPECT_EQ(read_snapshot(summary.checkpoint).position.batch, 4);  // evaluation left the position alone
  EXPECT_FALSE(trainer.train(loader, cross_entropy, s.sgd(2)).stopped);
  EXPECT_EQ(trainer.audit().steps, 13);
}

TEST(Trainer, EvaluationLeavesModesAndGeneratorAlone) {
  Scene s;
  TensorLoader loader = s.loader();
  MixedPrecisionTrainer trainer(s.model, s.options);
  s.model->drop->eval();  // frozen by the user
  const at::Tensor before = generator_state();
  trainer.evaluate(loader, cross_entropy);
  EXPECT_TRUE(before.equal(generator_state()));
  EXPECT_TRUE(s.model->is_training());
  EXPECT_TRUE(s.model->fc1->is_training());
  EXPECT_FALSE(s.model->drop->is_training());
  EXPECT_TRUE(trainer.audit().rows.empty());
}

TEST(Trainer, OptimizerOfTheUserKeepsItsLearningRate) {
  Scene s;
  TensorLoader loader = s.loader();
  auto adamw = std::make_shared<torch::optim::AdamW>(s.model->parameters(), torch::optim::AdamWOptions(0.01));
  TrainOptions options{.steps = 5, .optimizer = adamw, .schedule = {.kind = ScheduleKind::cosine}};
  double last = 1;
  options.on_step = [&](const StepResult& r) { last = r.lr; };
  MixedPrecisionTrainer(s.model, s.options).train(loader, cross_entropy, options);
  EXPECT_LT(last, 0.002);
  EXPECT_EQ(learning_rates(*adamw)[0], 0.01);
}

TEST(Trainer, CallersMistakes) {
  Scene s;
  TensorLoader loader = s.loader();
  EXPECT_ERROR(MixedPrecisionTrainer(s.model, {.optimizer_precision = "bf16"}), "fp32 in this version");
  EXPECT_ERROR(MixedPrecisionTrainer(s.model, {.precision = "fp17"}), "fp17");
  EXPECT_ERROR(MixedPrecisionTrainer(s.model, {.sensitive_layers = {"fc3"}}), "fc3");
  EXPECT_ERROR(MixedPrecisionTrainer(s.model, {.accumulate_steps = 0}), "accumulate_steps 0");
  EXPECT_ERROR(MixedPrecisionTrainer(s.model, {.max_grad_norm = -1}), "max_grad_norm -1");
  EXPECT_ERROR(MixedPrecisionTrainer(ModelHandle{}), "without a model");
  MixedPrecisionTrainer trainer(s.model);
  EXPECT_ERROR(trainer.train(loader, nullptr), "without a loss");
  EXPECT_ERROR(trainer.evaluate(loader), "without a loss");
  EXPECT_ERROR(trainer.train(loader, cross_entropy, {.epochs = -1}), "-1 epochs");
  EXPECT_ERROR(trainer.train(loader, cross_entropy, {.resume = true}), "without a run folder");
  std::vector<std::pair<at::Tensor, at::Tensor>> nothing;
  EXPECT_ERROR(trainer.train(nothing, cross_entropy), "without batches");
  Mlp half;
  half->to(at::kBFloat16);
  EXPECT_ERROR(MixedPrecisionTrainer{half}, "BFloat16");
}

TEST(Trainer, LossScaleIsOnForNarrowRangesOnly) {
  for (const auto& [precision, scale] : {std::pair{"fp32", 1.0}, {"bf16", 1.0}, {"fp16", 65536.0}, {"fp8", 65536.0}}) {
    Scene s(precision);
    TensorLoader loader = s.loader();
    TrainOptions options = s.sgd(1);
    options.on_step = [&](const StepResult& r) { EXPECT_EQ(r.loss_scale, scale) << precision; };
    MixedPrecisionTrainer(s.model, s.options).train(loader, cross_entropy, options);
  }
}

TEST(CountHits, ShapesOfScoresAndTargets) {
  const at::Tensor scores = torch::tensor({{0.f, 1.f, 0.f}, {1.f, 0.f, 0.f}});
  EXPECT_EQ(count_hits(scores, torch::tensor({1, 1}))->right, 1);
  const Hits sequence = *count_hits(scores.reshape({1, 2, 3}), torch::tensor({{1, -100}}));
  EXPECT_EQ(sequence.right, 1);
  EXPECT_EQ(sequence.total, 1);
  EXPECT_EQ(count_hits(scores, torch::tensor({{1, 0}}))->right, 2);
  EXPECT_EQ(count_hits(scores.t().reshape({1, 3, 2}), torch::tensor({{1, 0}}))->right, 2);
  EXPECT_FALSE(count_hits(scores, torch::rand({2, 3})));
  EXPECT_FALSE(count_hits(scores, torch::tensor({1, 1, 1})));
}

}  // namespace
}  // namespace hpqf::train
