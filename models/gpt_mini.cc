#include "models/gpt_mini.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <fmt/format.h>
#include <torch/nn/init.h>

#include <cmath>

#include "hpqf/base/error.h"
#include "models/seed.h"

namespace hpqf::models {
namespace {

constexpr int64_t kWidth = 128, kHeads = 4, kBlocks = 4;

torch::nn::LayerNorm layer_norm(int64_t width) { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})); }

// 0.02 as in GPT-2. The two linears that write into the residual stream start smaller, by sqrt(2 * blocks): the
// stream's variance then does not grow with depth.
void initialise(torch::nn::Module& model) {
  for (auto& item : model.named_parameters()) {
    const std::string& name = item.key();
    if (name.find("norm") != std::string::npos) continue;
    if (name.ends_with("bias")) {
      torch::nn::init::zeros_(item.value());
    } else {
      const bool residual = name.ends_with("proj.weight") || name.ends_with("down.weight");
      torch::nn::init::normal_(item.value(), 0.0, residual ? 0.02 / std::sqrt(2.0 * kBlocks) : 0.02);
    }
  }
}

}  // namespace

CausalAttentionImpl::CausalAttentionImpl(int64_t width, int64_t heads)
    : heads_(heads), qkv_(width, 3 * width), proj_(width, width) {
  register_module("qkv", qkv_);
  register_module("proj", proj_);
}

at::Tensor CausalAttentionImpl::forward(const at::Tensor& x) {
  const int64_t batch = x.size(0), time = x.size(1), width = x.size(2);
  const at::Tensor qkv = qkv_(x).view({batch, time, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4});
  const at::Tensor y = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                                        /*is_causal=*/true);
  return proj_(y.transpose(1, 2).reshape({batch, time, width}));
}

DecoderBlockImpl::DecoderBlockImpl(int64_t width, int64_t heads)
    : norm1_(layer_norm(width)),
      norm2_(layer_norm(width)),
      attention_(width, heads),
      up_(width, 4 * width),
      down_(4 * width, width) {
  register_module("norm1", norm1_);
  register_module("attention", attention_);
  register_module("norm2", norm2_);
  register_module("up", up_);
  register_module("down", down_);
}

at::Tensor DecoderBlockImpl::forward(const at::Tensor& x) {
  const at::Tensor y = x + attention_(norm1_(x));
  return y + down_(at::gelu(up_(norm2_(y))));
}

GptMiniImpl::GptMiniImpl(int64_t vocab, int64_t context)
    : tokens_(vocab, kWidth),
      positions_(context, kWidth),
      norm_(layer_norm(kWidth)),
      head_(torch::nn::LinearOptions(kWidth, vocab).bias(false)) {
  register_module("tokens", tokens_);
  register_module("positions", positions_);
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < kBlocks; ++i) {
    blocks_.emplace_back(kWidth, kHeads);
    list->push_back(blocks_.back());
  }
  register_module("blocks", list);
  register_module("norm", norm_);
  register_module("head", head_);
  initialise(*this);
}

at::Tensor GptMiniImpl::forward(const at::Tensor& bytes) {
  const int64_t time = bytes.size(1), context = positions_->options.num_embeddings();
  if (time > context) {
    throw Error(fmt::format("gpt-mini on {} tokens", time), fmt::format("at most {} tokens at once", context),
                "shorten the windows, or make the model with a longer context");
  }
  at::Tensor x = tokens_(bytes) + positions_(at::arange(time, bytes.options()));
  for (DecoderBlock& block : blocks_) x = block(x);
  return head_(norm_(x));
}

Model make_gpt_mini(const ModelOptions& options) {
  seed_weights(options.seed);
  GptMini model(options.vocab, options.context);
  return {"gpt-mini", Task::text, model.ptr(), [model](const at::Tensor& x) mutable { return model->forward(x); }};
}

}  // namespace hpqf::models
