#include "models/transformer.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/nn/init.h>

namespace hpqf::models {

EncoderBlockImpl::EncoderBlockImpl(int64_t width, int64_t heads, int64_t hidden, NormPlace norm)
    : heads_(heads),
      place_(norm),
      qkv_(width, 3 * width),
      proj_(width, width),
      up_(width, hidden),
      down_(hidden, width),
      norm1_(torch::nn::LayerNormOptions({width})),
      norm2_(torch::nn::LayerNormOptions({width})) {
  register_module("norm1", norm1_);
  register_module("qkv", qkv_);
  register_module("proj", proj_);
  register_module("norm2", norm2_);
  register_module("up", up_);
  register_module("down", down_);
}

at::Tensor EncoderBlockImpl::forward(const at::Tensor& x, const std::optional<at::Tensor>& attend) {
  if (place_ == NormPlace::before) {
    const at::Tensor y = x + attention(norm1_(x), attend);
    return y + perceptron(norm2_(y));
  }
  const at::Tensor y = norm1_(x + attention(x, attend));
  return norm2_(y + perceptron(y));
}

at::Tensor EncoderBlockImpl::attention(const at::Tensor& x, const std::optional<at::Tensor>& attend) {
  const int64_t batch = x.size(0), time = x.size(1), width = x.size(2);
  const at::Tensor qkv = qkv_(x).view({batch, time, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4});
  const at::Tensor y = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], attend);
  return proj_(y.transpose(1, 2).reshape({batch, time, width}));
}

at::Tensor EncoderBlockImpl::perceptron(const at::Tensor& x) { return down_(at::gelu(up_(x))); }

void initialise_transformer(torch::nn::Module& model) {
  for (auto& item : model.named_parameters()) {
    if (item.key().find("norm") != std::string::npos) continue;
    if (item.key().ends_with("bias")) {
      torch::nn::init::zeros_(item.value());
    } else {
      torch::nn::init::normal_(item.value(), 0.0, 0.02);
    }
  }
}

}  // namespace hpqf::models
