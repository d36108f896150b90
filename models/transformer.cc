#include "models/transformer.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/nn/init.h>

namespace hpqf::models {

torch::nn::LayerNorm layer_norm(int64_t width) { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})); }

AttentionImpl::AttentionImpl(int64_t width, int64_t heads, bool causal)
    : heads_(heads), causal_(causal), qkv_(width, 3 * width), proj_(width, width) {
  register_module("qkv", qkv_);
  register_module("proj", proj_);
}

at::Tensor AttentionImpl::forward(const at::Tensor& x, const std::optional<at::Tensor>& attend) {
  const int64_t batch = x.size(0), time = x.size(1), width = x.size(2);
  const at::Tensor qkv = qkv_(x).view({batch, time, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4});
  const at::Tensor y =
      at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], attend, /*dropout_p=*/0.0, /*is_causal=*/causal_);
  return proj_(y.transpose(1, 2).reshape({batch, time, width}));
}

TransformerBlockImpl::TransformerBlockImpl(const BlockOptions& options)
    : place_(options.norm),
      norm1_(layer_norm(options.width)),
      norm2_(layer_norm(options.width)),
      attention_(options.width, options.heads, options.causal),
      up_(options.width, 4 * options.width),
      down_(4 * options.width, options.width) {
  register_module("norm1", norm1_);
  register_module("attention", attention_);
  register_module("norm2", norm2_);
  register_module("up", up_);
  register_module("down", down_);
}

at::Tensor TransformerBlockImpl::forward(const at::Tensor& x, const std::optional<at::Tensor>& attend) {
  if (place_ == NormPlace::before) {
    const at::Tensor y = x + attention_(norm1_(x), attend);
    return y + perceptron(norm2_(y));
  }
  const at::Tensor y = norm1_(x + attention_(x, attend));
  return norm2_(y + perceptron(y));
}

at::Tensor TransformerBlockImpl::perceptron(const at::Tensor& x) { return down_(at::gelu(up_(x))); }

std::vector<TransformerBlock> add_blocks(torch::nn::Module& model, int64_t count, const BlockOptions& options) {
  std::vector<TransformerBlock> blocks;
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < count; ++i) {
    blocks.emplace_back(options);
    list->push_back(blocks.back());
  }
  model.register_module("blocks", list);
  return blocks;
}

void initialise_transformer(torch::nn::Module& model, double residual) {
  for (auto& item : model.named_parameters()) {
    const std::string& name = item.key();
    if (name.find("norm") != std::string::npos) continue;
    if (name.ends_with("bias")) {
      torch::nn::init::zeros_(item.value());
    } else {
      const bool writes = name.ends_with("proj.weight") || name.ends_with("down.weight");
      torch::nn::init::normal_(item.value(), 0.0, writes ? 0.02 / residual : 0.02);
    }
  }
}

}  // namespace hpqf::models
