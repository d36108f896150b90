// Products with the Hessian of a loss, in fp32 and outside of any plan: by double backward, and where an op has no
// second derivative, by differences of gradients, if the network is smooth enough for them.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::engine::sensitivity {

struct CurvatureData {
  std::vector<at::Tensor> parameters;       // each once; the Hessian is of the loss with respect to these
  std::function<at::Tensor(int64_t)> loss;  // of batch i, a fresh graph each time; a mean over the batch
  std::vector<double> weights = {1.0};      // share of each batch in the mean loss
};

// While it lives attention runs as written-out products: the fused kernels have no double backward (torch 2.13, CPU).
class HPQF_API MathAttention {
 public:
  MathAttention();
  ~MathAttention();
  MathAttention(const MathAttention&) = delete;
  MathAttention& operator=(const MathAttention&) = delete;

 private:
  bool flash_, efficient_, math_;
};

// With one batch the graph of the first derivative is kept (its memory is constant), with several it is rebuilt for
// each product. Gradients come from autograd::grad alone: backward(create_graph) would make the parameters own their
// graph.
class HPQF_API Curvature {
 public:
  // Error: the loss is no scalar; an op has no second derivative and the network has kinks (the op and one kink named).
  explicit Curvature(CurvatureData data);

  // The rows of H v that belong to `only` (indices of parameters; v has as many tensors): the diagonal block of these
  // parameters.
  std::vector<at::Tensor> product(const std::vector<at::Tensor>& v, const std::vector<size_t>& only);

  const std::vector<at::Tensor>& parameters() const { return data_.parameters; }
  bool by_differences() const { return differences_; }
  const std::string& reason() const { return reason_; }  // why differences are used

 private:
  std::vector<at::Tensor> first(int64_t batch, bool graph, const std::vector<size_t>* only);
  std::vector<at::Tensor> double_backward(const std::vector<at::Tensor>& v, const std::vector<size_t>& only);
  std::vector<at::Tensor> central(const std::vector<at::Tensor>& v, const std::vector<size_t>& only);
  void fall_back(const std::string& why);

  CurvatureData data_;
  std::vector<at::Tensor> kept_;  // first derivatives, with graph
  bool differences_ = false;
  std::string reason_;
};

// An op in the graph of `loss` at whose points of no derivative differences of gradients go wrong ("ReluBackward0"), or
// "". Differences see the curvature of such kinks, which double backward does not: on ResNet-20 they are off by factors
// of 2 to 15 at every step size.
HPQF_API std::string find_kink(const at::Tensor& loss);

}  // namespace hpqf::engine::sensitivity
