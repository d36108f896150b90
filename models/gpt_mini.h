// A small byte-level decoder in the manner of GPT-2 (Radford et al., 2019): pre-norm blocks, learned positions, GELU.
#pragma once
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <vector>

#include "models/model.h"

namespace hpqf::models {

class CausalAttentionImpl : public torch::nn::Module {
 public:
  CausalAttentionImpl(int64_t width, int64_t heads);
  at::Tensor forward(const at::Tensor& x);  // [B, T, width]

 private:
  int64_t heads_;
  torch::nn::Linear qkv_, proj_;
};
TORCH_MODULE(CausalAttention);

class DecoderBlockImpl : public torch::nn::Module {
 public:
  DecoderBlockImpl(int64_t width, int64_t heads);
  at::Tensor forward(const at::Tensor& x);  // [B, T, width]

 private:
  torch::nn::LayerNorm norm1_, norm2_;
  CausalAttention attention_;
  torch::nn::Linear up_, down_;
};
TORCH_MODULE(DecoderBlock);

class GptMiniImpl : public torch::nn::Module {
 public:
  GptMiniImpl(int64_t vocab, int64_t context);
  at::Tensor forward(const at::Tensor& bytes);  // [B, T] int64, T <= context

 private:
  torch::nn::Embedding tokens_, positions_;
  std::vector<DecoderBlock> blocks_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear head_;
};
TORCH_MODULE(GptMini);

Model make_gpt_mini(const ModelOptions& options);

}  // namespace hpqf::models
