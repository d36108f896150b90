#include "hpqf/engine/sensitivity/curvature.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "hpqf/base/error.h"
#include "hpqf/engine/runtime.h"

namespace hpqf::engine::sensitivity {
namespace {

using at::Tensor;

double squared_norm(const std::vector<Tensor>& v) {
  double sum = 0;
  for (const Tensor& t : v) sum += t.square().sum(at::kDouble).item<double>();
  return sum;
}

// A Python function marked once_differentiable leaves a node "Error" without edges: the engine would walk past it, and
// its curvature would be missing silently.
bool ends_in_error(const std::vector<Tensor>& derivatives) {
  std::vector<torch::autograd::Node*> open;
  for (const Tensor& g : derivatives)
    if (g.defined()) open.push_back(g.grad_fn().get());
  std::unordered_set<torch::autograd::Node*> seen;
  while (!open.empty()) {
    torch::autograd::Node* node = open.back();
    open.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (node->name().ends_with("Error")) return true;
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  return false;
}

// Parameters moved along v for a while; bit for bit back at the end.
class Moved {
 public:
  explicit Moved(const std::vector<Tensor>& parameters) : parameters_(parameters) {
    for (const Tensor& p : parameters) content_.push_back(p.detach().clone());
  }
  ~Moved() {
    at::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].detach().copy_(content_[i]);
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;
  void to(const std::vector<Tensor>& v, double step) {
    at::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].detach().copy_(content_[i].add(v[i], step));
  }

 private:
  const std::vector<Tensor> parameters_;
  std::vector<Tensor> content_;
};

}  // namespace

MathAttention::MathAttention()
    : flash_(at::globalContext().userEnabledFlashSDP()),
      efficient_(at::globalContext().userEnabledMemEfficientSDP()),
      math_(at::globalContext().userEnabledMathSDP()) {
  at::globalContext().setSDPUseFlash(false);
  at::globalContext().setSDPUseMemEfficient(false);
  at::globalContext().setSDPUseMath(true);
}
MathAttention::~MathAttention() {
  at::globalContext().setSDPUseFlash(flash_);
  at::globalContext().setSDPUseMemEfficient(efficient_);
  at::globalContext().setSDPUseMath(math_);
}

std::string find_kink(const Tensor& loss) {
  static constexpr std::array kKinks = {"Relu",       "Threshold", "Hardtanh", "Hardswish", "Hardsigmoid", "Hardshrink",
                                        "Softshrink", "MaxPool",   "Abs",      "Clamp",     "Max",         "Min",
                                        "Sort",       "Topk",      "Median",   "Round",     "Sign",        "L1Loss"};
  std::vector<torch::autograd::Node*> open{loss.grad_fn().get()};
  std::unordered_set<torch::autograd::Node*> seen;
  while (!open.empty()) {
    torch::autograd::Node* node = open.back();
    open.pop_back();
    if (!node || !seen.insert(node).second) continue;
    const std::string name = node->name();
    if (std::ranges::any_of(kKinks, [&](const char* kink) { return name.find(kink) != std::string::npos; }) &&
        name.find("Softmax") == std::string::npos)
      return name;
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  return "";
}

Curvature::Curvature(CurvatureData data) : data_(std::move(data)) {
  const Tensor loss = data_.loss(0);
  if (!loss.defined() || loss.numel() != 1)
    throw Error(fmt::format("the Hessian of a loss with {} elements", loss.defined() ? loss.numel() : 0),
                "a tensor with one element", "reduce it: loss.mean()");
  if (!loss.requires_grad() || data_.parameters.empty())
    throw Error("the Hessian of a loss that no trainable parameter decides", "parameters that require gradients",
                "call requires_grad_() on them");
}

std::vector<Tensor> Curvature::first(int64_t batch, bool graph, const std::vector<size_t>* only) {
  at::AutoGradMode gradients(true);
  const Passthrough fp32;
  const MathAttention written_out;
  std::vector<Tensor> wanted;
  if (only)
    for (size_t i : *only) wanted.push_back(data_.parameters[i]);
  else
    wanted = data_.parameters;
  return torch::autograd::grad({data_.loss(batch).reshape({})}, wanted, {}, graph, graph, /*allow_unused=*/true);
}

std::vector<Tensor> Curvature::double_backward(const std::vector<Tensor>& v, const std::vector<size_t>& only) {
  std::vector<Tensor> total;
  const bool keep = data_.weights.size() == 1;
  for (size_t batch = 0; batch < data_.weights.size(); ++batch) {
    std::vector<Tensor> fresh;
    if (kept_.empty()) {
      (keep ? kept_ : fresh) = first(int64_t(batch), true, nullptr);
      if (ends_in_error(keep ? kept_ : fresh))
        throw std::runtime_error("a Python function marked once_differentiable cannot be differentiated twice");
    }
    const std::vector<Tensor>& g = keep ? kept_ : fresh;
    std::vector<Tensor> outputs, inputs, along;
    for (size_t k = 0; k < only.size(); ++k) {
      inputs.push_back(data_.parameters[only[k]]);
      if (!g[only[k]].defined() || !g[only[k]].requires_grad()) continue;  // the loss is linear in it
      outputs.push_back(g[only[k]]);
      along.push_back(v[k]);
    }
    std::vector<Tensor> h(only.size());
    if (!outputs.empty())
      h = torch::autograd::grad(outputs, inputs, along, /*retain_graph=*/keep, /*create_graph=*/false,
                                /*allow_unused=*/true);
    for (size_t k = 0; k < only.size(); ++k) {
      Tensor part = h[k].defined() ? h[k].mul(data_.weights[batch]) : at::zeros_like(v[k]);
      if (total.size() == only.size())
        total[k].add_(part);
      else
        total.push_back(std::move(part));
    }
  }
  return total;
}

std::vector<Tensor> Curvature::central(const std::vector<Tensor>& v, const std::vector<size_t>& only) {
  std::vector<Tensor> moved, total;
  for (size_t i : only) moved.push_back(data_.parameters[i]);
  // Of 1e-2, 1e-3 and 1e-4 the middle one is closest to double backward on a network of SiLU (3e-4 relative).
  const double length = std::sqrt(squared_norm(v)),
               step = 1e-3 * std::max(std::sqrt(squared_norm(moved)), 1e-6) / length;
  if (!(length > 0)) {
    for (const Tensor& t : v) total.push_back(at::zeros_like(t));
    return total;
  }
  Moved weights(moved);
  for (const double side : {1.0, -1.0}) {
    weights.to(v, side * step);
    for (size_t batch = 0; batch < data_.weights.size(); ++batch) {
      const std::vector<Tensor> g = first(int64_t(batch), false, &only);
      for (size_t k = 0; k < only.size(); ++k) {
        Tensor part = g[k].defined() ? g[k].mul(side * data_.weights[batch] / (2 * step)) : at::zeros_like(v[k]);
        if (total.size() == only.size())
          total[k].add_(part);
        else
          total.push_back(std::move(part));
      }
    }
  }
  return total;
}

void Curvature::fall_back(const std::string& why) {
  kept_.clear();
  Tensor loss;
  {
    at::AutoGradMode gradients(true);
    loss = data_.loss(0);
  }
  std::string line = why.substr(0, why.find('\n'));
  if (const std::string kink = find_kink(loss); !kink.empty())
    throw Error(fmt::format("the Hessian through an op without second derivative: {}", line),
                fmt::format("differences of gradients instead, but only for smooth networks: this one holds {}, whose "
                            "kinks they would take for curvature",
                            kink),
                "leave the Hessian out: the Fisher score needs no second derivative");
  differences_ = true;
  reason_ = std::move(line);
}

std::vector<Tensor> Curvature::product(const std::vector<Tensor>& v, const std::vector<size_t>& only) {
  const Passthrough fp32;
  const MathAttention written_out;
  if (!differences_) {
    try {
      return double_backward(v, only);
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const c10::Error& e) {
      fall_back(e.what_without_backtrace());
    } catch (const Error&) {
      throw;
    } catch (const std::runtime_error& e) {  // what a Python function's backward raised
      fall_back(e.what());
    }
  }
  return central(v, only);
}

}  // namespace hpqf::engine::sensitivity
