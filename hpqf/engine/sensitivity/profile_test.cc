// Sensitivity of C++ models against gradients of single samples. The same for Python models: tests/python.
#include "hpqf/engine/sensitivity/profile.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn.h>

#include "hpqf/base/error.h"
#include "hpqf/engine/rounding.h"
#include "hpqf/engine/sensitivity/labels.h"
#include "hpqf/engine/sensitivity/model_hessian.h"
#include "hpqf/engine/sensitivity/terms.h"

namespace hpqf::engine::sensitivity {
namespace {

namespace nn = torch::nn;
using at::Tensor;
using plan::Operand;

struct NetImpl : nn::Module {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d bn{nullptr};
  nn::Linear fc{nullptr};
  NetImpl() {
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1).stride(2)));
    bn = register_module("bn", nn::BatchNorm2d(8));
    fc = register_module("fc", nn::Linear(8 * 4 * 4, 5));
  }
  Tensor forward(const Tensor& x) { return fc->forward(bn->forward(conv->forward(x)).relu_().flatten(1)); }
};
TORCH_MODULE(Net);

Tensor loss(const Tensor& output, const Tensor& target) { return at::cross_entropy_loss(output, target); }

Tensor weight_error(const Tensor& w, const char* format, int64_t axis) {
  Runtime plain(*nn::Linear(1, 1), PrecisionPlan());
  return round(w.detach(), formats::parse_block_format(format), axis, *plain.layer(""), plan::Role::weight)
      .sub(w.detach());
}

template <class Model>
std::function<std::optional<Example>()> in_batches(const Model&, const Tensor& x, const Tensor& y, int64_t size) {
  auto begin = std::make_shared<int64_t>(0);
  return [=]() -> std::optional<Example> {
    if (*begin >= x.size(0)) return std::nullopt;
    const int64_t n = std::min(size, x.size(0) - *begin), at = *begin;
    *begin += n;
    return Example{x.narrow(0, at, n), y.narrow(0, at, n)};
  };
}

void expect_squares(nn::Module& model, const std::function<Tensor(const Tensor&)>& forward, const Tensor& x,
                    const Tensor& y, const std::vector<std::tuple<std::string, Tensor, int64_t>>& weights) {
  const ProfileResult r =
      profile(model, forward, loss, in_batches(model, x, y, 4),
              {.formats = {formats::parse_block_format("int4"), formats::parse_block_format("bf16")},
               .samples = x.size(0),
               .sampled_labels = false});
  model.eval();
  for (const char* format : {"int4", "bf16"}) {
    std::map<std::string, Tensor> terms;
    for (const auto& [layer, w, axis] : weights) {
      const Tensor error = weight_error(w, format, axis);
      std::vector<Tensor> e;
      for (int64_t i = 0; i < x.size(0); ++i) {
        const Tensor l = loss(forward(x.narrow(0, i, 1)), y.narrow(0, i, 1));
        e.push_back(torch::autograd::grad({l}, {w})[0].mul(error).sum(at::kDouble));
      }
      const Tensor sum = at::stack(e);
      terms[layer] = terms[layer].defined() ? terms[layer].add(sum) : sum;
    }
    for (const auto& [name, e] : terms) {
      const plan::LayerSensitivity* layer = plan::find_layer(r.sensitivity, name);
      ASSERT_NE(layer, nullptr) << name;
      const plan::FormatScore* score = plan::find_score(*layer, Operand::weight, formats::parse_block_format(format));
      ASSERT_NE(score, nullptr);
      const double expected = e.square().mean().item<double>() / 2;
      EXPECT_NEAR(score->score, expected, 1e-5 * expected) << name << " " << format;
      EXPECT_NEAR(score->first_order, e.mean().item<double>(), 1e-5 * e.abs().mean().item<double>()) << name;
      EXPECT_EQ(score->terms, x.size(0));
    }
  }
}

TEST(Profile, ScoresAreTheSquaresOfSingleGradients) {
  torch::manual_seed(1);
  Net net;
  expect_squares(*net, [&](const Tensor& x) { return net->forward(x); }, at::randn({10, 3, 8, 8}),
                 at::randint(5, {10}, at::kLong), {{"conv", net->conv->weight, 1}, {"fc", net->fc->weight, -1}});
}

TEST(Profile, RecurrentLayers) {
  torch::manual_seed(2);
  struct TaggerImpl : nn::Module {
    nn::LSTM lstm{nullptr};
    nn::Linear fc{nullptr};
    TaggerImpl() {
      lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(6, 8).num_layers(2).batch_first(true)));
      fc = register_module("fc", nn::Linear(8, 4));
    }
    Tensor forward(const Tensor& x) { return fc->forward(std::get<0>(lstm->forward(x)).mean(1)); }
  };
  auto net = std::make_shared<TaggerImpl>();
  std::vector<std::tuple<std::string, Tensor, int64_t>> weights;
  for (const auto& p : net->lstm->named_parameters())
    if (p.value().dim() == 2) weights.emplace_back("lstm", p.value(), -1);
  weights.emplace_back("fc", net->fc->weight, -1);
  expect_squares(
      *net, [&](const Tensor& x) { return net->forward(x); }, at::randn({6, 5, 6}), at::randint(4, {6}, at::kLong),
      weights);
}

TEST(Profile, LeavesTheModelAsItWas) {
  Net net;
  net->train();
  net->bn->eval();
  const Tensor x = at::randn({8, 3, 8, 8}), y = at::randint(5, {8}, at::kLong);
  loss(net->forward(x), y).backward();
  std::vector<Tensor> before;
  for (const Tensor& t : net->parameters()) before.push_back(t.detach().clone());
  for (const Tensor& t : net->parameters()) before.push_back(t.grad().clone());
  for (const Tensor& t : net->buffers()) before.push_back(t.clone());
  torch::manual_seed(5);
  const Tensor drawn = at::randn({3});
  torch::manual_seed(5);
  EXPECT_THROW(profile(
                   *net, [&](const Tensor& t) { return net->forward(t); }, loss,
                   []() -> std::optional<Example> { return std::nullopt; }),
               Error);
  profile(
      *net, [&](const Tensor& t) { return net->forward(t + at::rand({1}) * 0); }, loss, in_batches(net, x, y, 8));
  EXPECT_TRUE(at::randn({3}).equal(drawn));
  size_t i = 0;
  for (const Tensor& t : net->parameters()) EXPECT_TRUE(t.equal(before[i++]));
  for (const Tensor& t : net->parameters()) EXPECT_TRUE(t.grad().equal(before[i++]));
  for (const Tensor& t : net->buffers()) EXPECT_TRUE(t.equal(before[i++]));
  EXPECT_TRUE(net->is_training() && net->conv->is_training() && !net->bn->is_training());
}

TEST(Profile, EveryFormatByDefault) {
  Net net;
  const ProfileResult r = profile(
      *net, [&](const Tensor& t) { return net->forward(t); }, loss,
      in_batches(net, at::randn({8, 3, 8, 8}), at::randint(5, {8}, at::kLong), 8));
  ASSERT_EQ(r.sensitivity.layers.size(), 2u);
  EXPECT_EQ(r.sensitivity.layers[0].scores.size(), 2u * (formats::kFormatCount - 1));
  EXPECT_EQ(r.sensitivity.layers[0].macs, 8 * 3 * 9 * 16);
  EXPECT_EQ(r.sensitivity.layers[0].inputs, 3 * 8 * 8);
  EXPECT_EQ(r.sensitivity.layers[0].weights, 8 * 3 * 9);
}

TEST(Terms, FollowTheTargets) {
  EXPECT_EQ(term_dimensions({32, 8, 5, 5}, {32}), 1u);    // convolution: images
  EXPECT_EQ(term_dimensions({4, 7, 16}, {4, 7}), 3u);     // tokens
  EXPECT_EQ(term_dimensions({28, 16}, {4, 7}), 1u);       // tokens, flat
  EXPECT_EQ(term_dimensions({4, 7, 16}, {28}), 3u);       // flat targets
  EXPECT_EQ(term_dimensions({4, 7, 16}, {4}), 1u);        // a sequence with one label
  EXPECT_EQ(term_dimensions({7, 4, 16}, {4}), 2u);        // time first
  EXPECT_EQ(term_dimensions({4, 3, 7, 16}, {4, 7}), 5u);  // heads between
  EXPECT_EQ(term_dimensions({7, 3, 4, 16}, {4, 7}), 5u);  // ... and time first
  EXPECT_EQ(term_dimensions({12, 9, 9}, {4, 7}), 1u);     // unknown: the first
  EXPECT_EQ(term_dimensions({}, {1}), 0u);
}

TEST(Labels, AreDrawnFromTheSoftmax) {
  const Tensor scores = at::tensor({0.0f, 1.0f, 2.0f}).expand({60000, 3});
  const Tensor drawn = sample_labels(scores, at::zeros({60000}, at::kLong), 7, 0);
  const Tensor p = at::softmax(scores[0], 0);
  for (int64_t c = 0; c < 3; ++c) {
    const double share = drawn.eq(c).to(at::kDouble).mean().item<double>(), want = p[c].item<double>();
    EXPECT_NEAR(share, want, 5 * std::sqrt(want * (1 - want) / 60000)) << c;
  }
  EXPECT_TRUE(
      sample_labels(scores.narrow(0, 100, 50), at::zeros({50}, at::kLong), 7, 100).equal(drawn.narrow(0, 100, 50)))
      << "row i draws the same whatever the batch";
  EXPECT_FALSE(sample_labels(scores, at::zeros({60000}, at::kLong), 8, 0).equal(drawn));
  const Tensor ignored = at::full({60000}, -100, at::kLong);
  EXPECT_TRUE(sample_labels(scores, ignored, 7, 0).equal(ignored));
}

TEST(ModelHessian, LeavesTheModelAndFindsACurvature) {
  torch::manual_seed(3);
  Net net;
  const Tensor x = at::randn({8, 3, 8, 8}), y = at::randint(5, {8}, at::kLong);
  ProfileResult r = profile(*net, [&](const Tensor& t) { return net->forward(t); }, loss, in_batches(net, x, y, 8),
                            {.formats = {formats::parse_block_format("int4")}});
  const Tensor before = net->conv->weight.detach().clone();
  const HessianResult whole =
      model_hessian(*net, r.sensitivity, [&] { return loss(net->forward(x), y); }, {.probes = 20});
  EXPECT_EQ(whole.eigenvalues.size(), 2u);
  EXPECT_GT(whole.eigenvalues[0], 0);
  ASSERT_TRUE(r.sensitivity.layers[0].hessian);
  EXPECT_TRUE(r.sensitivity.layers[0].scores[0].omega);
  EXPECT_TRUE(net->conv->weight.equal(before));
  EXPECT_TRUE(net->is_training());
}

}  // namespace
}  // namespace hpqf::engine::sensitivity
