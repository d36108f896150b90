#include "hpqf/train/checkpoint.h"

#include <sys/resource.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/adam.h>

#include <csignal>
#include <fstream>

#include "hpqf/base/file.h"
#include "hpqf/train/fixtures_test.h"
#include "hpqf/train/tensor_file.h"

namespace hpqf::train {
namespace {

struct NetImpl : torch::nn::Module {
  NetImpl() {
    fc = register_module("fc", torch::nn::Linear(4, 4));
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
  }
  at::Tensor forward(const at::Tensor& x) { return norm(fc(x)); }
  torch::nn::Linear fc{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Net);

struct State {
  Net net;
  torch::optim::Adam adam{net->parameters(), torch::optim::AdamOptions(0.01)};
  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      adam.zero_grad();
      net->forward(torch::randn({6, 4})).square().sum().mul(0.1).add(net->fc->weight.sum()).backward();
      adam.step();
    }
  }
  at::Tensor flat() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& t : net->parameters()) all.push_back(t.detach().flatten().to(at::kDouble));
    for (const at::Tensor& t : net->buffers()) all.push_back(t.flatten().to(at::kDouble));
    return torch::cat(all);
  }
};

Snapshot snapshot(int64_t step = 12) {
  Snapshot s{
      .counters = {.step = step, .applied = 10},
      .position =
          {.epoch = 2, .batch = 3, .samples = 50, .batch_size = 8, .seed = ~0ull, .shuffle = true, .drop_last = true},
      .loss_scale = {.scale = 1.0 / 3, .clean_steps = 5, .bad_steps = 1, .best_scale = 1e300, .skipped_total = 2},
      .schedule = {.kind = ScheduleKind::cosine, .warmup_steps = 1, .total_steps = 99, .final_factor = 0.1},
      .base_lr = {0.01, 1.0 / 7},
      .generator = generator_state()};
  s.fallback.forward["conv \"1\""] = 3;
  s.requested = PrecisionPlan::with_sensitive("fp16", {"fc"});
  s.plan = s.requested.with_rule({"norm", plan::uniform_precision("bf16", "why not")});
  return s;
}

TEST(Checkpoint, EverythingComesBack) {
  const Folder folder;
  torch::manual_seed(3);
  State a, b;
  a.train(4);
  const Snapshot saved = snapshot();
  const at::Tensor drawn = torch::rand({3});
  save_checkpoint(folder / "c", saved, *a.net, a.adam);
  const Snapshot loaded = load_checkpoint(folder / "c", *b.net, b.adam);
  EXPECT_EQ(loaded.counters, saved.counters);
  EXPECT_EQ(loaded.position, saved.position);
  EXPECT_EQ(loaded.loss_scale, saved.loss_scale);
  EXPECT_EQ(loaded.fallback, saved.fallback);
  EXPECT_EQ(loaded.plan, saved.plan);
  EXPECT_EQ(loaded.plan.epoch(), saved.plan.epoch());
  EXPECT_EQ(loaded.requested, saved.requested);
  EXPECT_EQ(loaded.schedule, saved.schedule);
  EXPECT_EQ(loaded.base_lr, saved.base_lr);
  EXPECT_FALSE(loaded.epoch_generator.defined());
  set_generator_state(loaded.generator);
  EXPECT_TRUE(torch::rand({3}).equal(drawn));
  EXPECT_TRUE(a.flat().equal(b.flat()));
  torch::manual_seed(9);
  a.train(3);
  torch::manual_seed(9);
  b.train(3);
  EXPECT_TRUE(a.flat().equal(b.flat()));
}

TEST(Checkpoint, OnErrorNothingWasTouched) {
  const Folder folder;
  torch::manual_seed(3);
  State a;
  a.train(2);
  save_checkpoint(folder / "c", snapshot(), *a.net, a.adam);
  a.train(1);
  const at::Tensor before = a.flat();
  const std::string good = base::read_file(folder / "c");
  const auto refused = [&](const std::string& text) {
    EXPECT_ERROR(load_checkpoint(folder / "b", *a.net, a.adam), text);
    EXPECT_TRUE(a.flat().equal(before));
  };
  base::atomic_write(folder / "b", std::string_view(good).substr(0, good.size() - 100));
  refused("truncated");
  // Rewritten with right checksums, but without one key or one tensor.
  const TensorFile whole = read_tensor_file(folder / "c", "hpqf.checkpoint", 1);
  for (const auto& [key, value] : whole.metadata) {
    if (key == "schema" || key == "version") continue;
    TensorFile file = whole;
    file.metadata.erase(key);
    write_tensor_file(folder / "b", file);
    refused("'" + key + "'");
  }
  for (size_t i = 0; i < whole.tensors.size(); ++i) {
    TensorFile file = whole;
    std::string name = file.tensors[i].name;
    file.tensors.erase(file.tensors.begin() + static_cast<int64_t>(i));
    write_tensor_file(folder / "b", file);
    for (const char* prefix : {"model.", "optimizer."}) {
      if (name.starts_with(prefix)) name = name.substr(std::string_view(prefix).size());
    }
    refused("'" + name + "'");
  }
  TensorFile file = whole;
  file.metadata["state"].resize(20);
  write_tensor_file(folder / "b", file);
  refused("state");
}

TEST(CheckpointFolder, KeepsTheNewestAndKnowsTheIntact) {
  const Folder dir;
  const CheckpointFolder folder(dir / "checkpoints", 2);
  EXPECT_FALSE(folder.newest());
  State a;
  for (const int64_t step : {5, 10, 15}) folder.save(snapshot(step), *a.net, a.adam);
  EXPECT_EQ(folder.steps(), (std::vector<int64_t>{10, 15}));
  EXPECT_EQ(*folder.newest(), folder.path(15));
  std::ofstream(dir / "checkpoints/step-00000020.safetensors.tmp123") << "left by a kill";
  std::ofstream(dir / "checkpoints/notes.txt") << "of the user";
  EXPECT_EQ(*folder.newest(), folder.path(15));
  std::ofstream(folder.path(15), std::ios::app) << "x";
  EXPECT_ERROR(folder.newest(), folder.path(10));
  std::ofstream(folder.path(10)) << "x";
  EXPECT_ERROR(folder.newest(), "no older checkpoint is intact");
  EXPECT_ERROR(CheckpointFolder("x", 0), "keep 0");
}

TEST(CheckpointFolder, AFullDiskLeavesTheOlderOnes) {
  const Folder dir;
  const CheckpointFolder folder(dir / "checkpoints", 2);
  State a;
  folder.save(snapshot(1), *a.net, a.adam);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 512;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    folder.save(snapshot(2), *a.net, a.adam);
  } catch (const Error& e) {
    message = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_FALSE(message.empty());
  EXPECT_EQ(folder.steps(), (std::vector<int64_t>{1}));
  EXPECT_EQ(*folder.newest(), folder.path(1));
}

}  // namespace
}  // namespace hpqf::train
