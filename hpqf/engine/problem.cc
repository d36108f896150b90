#include "hpqf/engine/problem.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/zeros.h>

#include <optional>

#include "hpqf/engine/instrument.h"
#include "hpqf/engine/rnn_layer.h"
#include "hpqf/engine/runtime.h"

namespace hpqf::engine {
namespace {

using at::Tensor;

Tensor random(at::Generator& generator, at::IntArrayRef sizes) { return at::randn(sizes, generator, at::kFloat); }

// a: {steps, sequences, inputs}; b: {layers, hidden, directions}
std::function<Tensor()> recurrent(const ProblemShape& s, const Tensor& x, const std::vector<Tensor>& weights) {
  const int64_t layers = s.b[0], directions = s.b[2];
  const Tensor h0 = at::zeros({layers * directions, s.a[1], s.b[1]});
  const bool bias = s.bias, both = directions == 2;
  if (s.op == op_name(Cell::lstm))
    return [=] { return std::get<0>(at::lstm(x, {h0, h0}, weights, bias, layers, 0.0, true, both, false)); };
  if (s.op == op_name(Cell::gru))
    return [=] { return std::get<0>(at::gru(x, h0, weights, bias, layers, 0.0, true, both, false)); };
  if (s.op == op_name(Cell::rnn_tanh))
    return [=] { return std::get<0>(at::rnn_tanh(x, h0, weights, bias, layers, 0.0, true, both, false)); };
  return [=] { return std::get<0>(at::rnn_relu(x, h0, weights, bias, layers, 0.0, true, both, false)); };
}

std::vector<Tensor> recurrent_weights(const ProblemShape& s, at::Generator& generator) {
  const int64_t hidden = s.b[1], directions = s.b[2], gates = s.b[3] * hidden;
  std::vector<Tensor> weights;
  for (int64_t layer = 0; layer < s.b[0]; ++layer)
    for (int64_t d = 0; d < directions; ++d) {
      // Small, so that the recurrence stays in range.
      weights.push_back(random(generator, {gates, layer == 0 ? s.a[2] : directions * hidden}).mul_(0.05));
      weights.push_back(random(generator, {gates, hidden}).mul_(0.05));
      for (int b = 0; s.bias && b < 2; ++b) weights.push_back(at::zeros({gates}));
    }
  return weights;
}

}  // namespace

Problem::Problem(const ProblemShape& s) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(1);
  x_ = random(generator, s.a).requires_grad_();
  if (s.a.size() == 3) {
    weights_ = recurrent_weights(s, generator);
  } else {
    weights_ = {random(generator, s.b)};
    if (s.bias) weights_.push_back(random(generator, {s.b.front()}));
  }
  for (Tensor& w : weights_) w.requires_grad_();
  const std::optional<Tensor> bias = s.bias ? std::optional(weights_.back()) : std::nullopt;
  if (s.a.size() == 3) {
    forward_ = recurrent(s, x_, weights_);
  } else if (s.geometry.empty()) {
    forward_ = [x = x_, w = weights_[0], bias] { return at::linear(x, w, bias); };
  } else {
    forward_ = [x = x_, w = weights_[0], bias, g = s.geometry] {
      return at::conv2d(x, w, bias, {g[0], g[1]}, {g[2], g[3]}, {g[4], g[5]}, g[6]);
    };
  }
  g_ = random(generator, forward_().sizes());
}

double Problem::seconds(const PrecisionPlan& plan) { return run(plan, nullptr); }

std::string Problem::emulated(const PrecisionPlan& plan) {
  struct Watch : observe::EventSink {
    void on_op(const observe::OpEvent& event) override {
      if (event.implementation == "emulated") why = event.reason.empty() ? "emulated" : event.reason;
    }
    void on_cast(const observe::CastEvent&) override {}
    std::string why;
  };
  const auto watch = std::make_shared<Watch>();
  run(plan, watch);
  return watch->why;
}

double Problem::run(const PrecisionPlan& plan, std::shared_ptr<observe::EventSink> events) {
  plan::ModelFacts facts{"rates", {{"layer", "Layer", plan::LayerKind::linear, weights_.front().numel()}}};
  std::vector<LayerParameter> parameters;
  for (size_t i = 0; i < weights_.size(); ++i) parameters.push_back({"layer", std::to_string(i), weights_[i]});
  Runtime runtime(ModelDescription{facts, parameters}, plan, {.events = std::move(events)});
  {
    at::NoGradGuard no_grad;
    for (Tensor& w : weights_) w.mul_(1.0);
  }
  x_.mutable_grad() = Tensor();
  for (Tensor& w : weights_) w.mutable_grad() = Tensor();
  const int64_t start = now_ns();
  Tensor y;
  {
    const LayerScope inside(runtime.layer("layer"));
    y = forward_();
  }
  y.backward(g_);
  return double(now_ns() - start) * 1e-9;
}

}  // namespace hpqf::engine
