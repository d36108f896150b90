#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <string_view>

#include "hpqf/base/error.h"
#include "models/registry.h"

namespace hpqf::models {
namespace {

// Counted by hand from the layer sizes.
constexpr int64_t kResNet = 16 * 9 + 32                                                                   // conv1, bn1
                            + 6 * (16 * 16 * 9 + 32)                                                      // stage 1
                            + (16 * 32 * 9 + 64) + 5 * (32 * 32 * 9 + 64)                                 // stage 2
                            + (32 * 64 * 9 + 128) + 5 * (64 * 64 * 9 + 128)                               // stage 3
                            + 64 * 10 + 10;                                                               // fc
constexpr int64_t kGpt = 256 * 128 + 128 * 128                                                            // embeddings
                         + 4 * (2 * 256 + 128 * 384 + 384 + 128 * 128 + 128 + 2 * 128 * 512 + 512 + 128)  // blocks
                         + 256 + 128 * 256;                                                               // norm, head
constexpr int64_t kLstm = 256 * 128 + 4 * 256 * (128 + 256 + 2) + 4 * 256 * (256 + 256 + 2) + 256 * 256 + 256;

TEST(Models, ParameterCounts) {
  EXPECT_EQ(find_model("resnet20").make({}).parameters(), kResNet);
  EXPECT_EQ(find_model("resnet20").make({}).parameters(), 269434);
  // The figure of the ResNet paper's CIFAR network (0.27 M) with three input channels.
  EXPECT_EQ(find_model("resnet20").make({.in_channels = 3}).parameters(), 269722);
  EXPECT_EQ(find_model("gpt-mini").make({}).parameters(), kGpt);
  EXPECT_EQ(find_model("lstm-lm").make({}).parameters(), kLstm);
}

// 49 patches and the class token; a block: two norms, qkv, proj, up, down.
constexpr int64_t kVit = 96 * 16 + 96 + 96 + 50 * 96 +
                         6 * (4 * 96 + 96 * 288 + 288 + 96 * 96 + 96 + 2 * 96 * 384 + 384 + 96) + 192 + 96 * 10 + 10;
constexpr int64_t kBert = 256 * 256 + 128 * 256 + 512 +
                          4 * (4 * 256 + 256 * 768 + 768 + 256 * 256 + 256 + 2 * 256 * 1024 + 1024 + 256) + 256 * 256 +
                          256 + 2560 + 10;

TEST(Models, ParameterCountsOfTheEncoders) {
  EXPECT_EQ(find_model("vit-tiny").make({}).parameters(), kVit);
  EXPECT_EQ(find_model("bert-mini").make({}).parameters(), kBert);
  // The published BERT mini has 11.2 M: 30522 tokens, 512 positions, 2 segments.
  EXPECT_EQ(kBert - 256 * 256 - 128 * 256 - 2570 + 256 * (30522 + 512 + 2), 11170560);
}

struct TinyBatch {
  at::Tensor data, target;
};
TinyBatch tiny_batch(Task task) {
  if (task == Task::images) return {at::randn({4, 1, 28, 28}), at::randint(10, {4}, at::kLong)};
  if (task == Task::sentences) return {at::randint(1, 256, {4, 16}, at::kLong), at::randint(10, {4}, at::kLong)};
  return {at::randint(256, {4, 16}, at::kLong), at::randint(256, {4, 16}, at::kLong)};
}

class EveryModel : public testing::TestWithParam<const ModelEntry*> {};

TEST_P(EveryModel, ShapesAndNames) {
  const ModelEntry& entry = *GetParam();
  Model model = entry.make({});
  EXPECT_EQ(model.name, entry.name);
  EXPECT_EQ(model.task, entry.task);
  const TinyBatch batch = tiny_batch(entry.task);
  const at::Tensor y = model.forward(batch.data);
  const std::vector<int64_t> expected =
      classifies(entry.task) ? std::vector<int64_t>{4, 10} : std::vector<int64_t>{4, 16, 256};
  EXPECT_EQ(y.sizes().vec(), expected);
  EXPECT_TRUE(y.isfinite().all().item<bool>());
}

TEST_P(EveryModel, UntrainedLossIsNearThatOfGuessing) {
  const ModelEntry& entry = *GetParam();
  Model model = entry.make({});
  const TinyBatch batch = tiny_batch(entry.task);
  const double guess = std::log(classifies(entry.task) ? 10.0 : 256.0);
  EXPECT_NEAR(loss(entry.task, model.forward(batch.data), batch.target).item<double>(), guess, 1.5);
}

TEST_P(EveryModel, LossFallsOnOneBatch) {
  const ModelEntry& entry = *GetParam();
  Model model = entry.make({.seed = 3});
  const TinyBatch batch = tiny_batch(entry.task);
  // Norms behind the residual sums bear no such rate without a warm-up.
  const double rate = std::string_view(entry.name) == "bert-mini" ? 3e-4 : 3e-3;
  torch::optim::AdamW optimizer(model.module->parameters(), torch::optim::AdamWOptions(rate));
  double first = 0, last = 0;
  for (int step = 0; step < 25; ++step) {
    optimizer.zero_grad();
    const at::Tensor value = loss(entry.task, model.forward(batch.data), batch.target);
    value.backward();
    optimizer.step();
    last = value.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, 0.5 * first);
}

TEST_P(EveryModel, SeedDecidesTheWeights) {
  const auto weights = [&](uint64_t seed) { return GetParam()->make({.seed = seed}).module->parameters(); };
  const auto a = weights(1), b = weights(1), c = weights(2);
  bool differs = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i].equal(b[i]));
    differs = differs || !a[i].equal(c[i]);
  }
  EXPECT_TRUE(differs);
}

TEST_P(EveryModel, EveryParameterGetsAGradient) {
  const ModelEntry& entry = *GetParam();
  Model model = entry.make({});
  const TinyBatch batch = tiny_batch(entry.task);
  loss(entry.task, model.forward(batch.data), batch.target).backward();
  for (const auto& item : model.module->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
  }
}

std::vector<const ModelEntry*> entries() {
  std::vector<const ModelEntry*> all;
  for (const ModelEntry& entry : all_models()) all.push_back(&entry);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, EveryModel, testing::ValuesIn(entries()), [](const auto& info) {
  std::string name = info.param->name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

TEST(Models, TextModelsDoNotLookAhead) {
  for (const char* name : {"gpt-mini", "lstm-lm"}) {
    Model model = find_model(name).make({});
    at::Tensor x = at::randint(256, {1, 12}, at::kLong);
    const at::Tensor before = model.forward(x);
    x[0][8] = (x[0][8] + 1) % 256;
    const at::Tensor after = model.forward(x);
    EXPECT_TRUE(before.narrow(1, 0, 8).allclose(after.narrow(1, 0, 8), 1e-5, 1e-6)) << name;
    EXPECT_FALSE(before.narrow(1, 8, 1).allclose(after.narrow(1, 8, 1), 1e-5, 1e-6)) << name;
  }
}

TEST(Models, LayerNamesThatPlansUse) {
  const auto model = find_model("resnet20").make({});
  const auto modules = model.module->named_modules();
  for (const char* name : {"conv1", "layer1.0.conv1", "layer3.2.bn2", "fc"})
    EXPECT_TRUE(modules.contains(name)) << name;
}

TEST(Models, OddImageSizes) {
  Model model = find_model("resnet20").make({.in_channels = 3, .classes = 7});
  EXPECT_EQ(model.forward(at::randn({2, 3, 33, 17})).sizes().vec(), (std::vector<int64_t>{2, 7}));
}

TEST(Models, UnknownNameListsTheNames) {
  try {
    find_model("resnet99");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.asked().find("resnet99"), std::string::npos);
    EXPECT_EQ(e.allowed(), "resnet20, vit-tiny, bert-mini, gpt-mini, lstm-lm");
  }
}

TEST(Models, VitTakesTheImagesItWasMadeFor) {
  Model model = find_model("vit-tiny").make({.in_channels = 3, .image = 32, .classes = 7});
  EXPECT_EQ(model.forward(at::randn({2, 3, 32, 32})).sizes().vec(), (std::vector<int64_t>{2, 7}));
  EXPECT_THROW(model.forward(at::randn({2, 3, 28, 28})), Error);
  EXPECT_THROW(find_model("vit-tiny").make({.image = 30}), Error);
}

TEST(Models, BertDoesNotSeePadding) {
  Model model = find_model("bert-mini").make({.context = 16});
  at::Tensor x = at::randint(3, 256, {2, 16}, at::kLong);
  x.narrow(1, 9, 7).zero_();
  EXPECT_TRUE(model.forward(x).allclose(model.forward(x.narrow(1, 0, 9)), 1e-4, 1e-5));
  EXPECT_THROW(model.forward(at::ones({1, 17}, at::kLong)), Error);
}

TEST(Models, GptRefusesMoreThanItsContext) {
  Model model = find_model("gpt-mini").make({.context = 8});
  EXPECT_NO_THROW(model.forward(at::randint(256, {1, 8}, at::kLong)));
  EXPECT_THROW(model.forward(at::randint(256, {1, 9}, at::kLong)), Error);
}

}  // namespace
}  // namespace hpqf::models
