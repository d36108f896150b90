// A small byte-level decoder in the manner of GPT-2 (Radford et al., 2019): pre-norm blocks, learned positions, GELU.
#pragma once
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <vector>

#include "models/model.h"
#include "models/transformer.h"

namespace hpqf::models {

class GptMiniImpl : public torch::nn::Module {
 public:
  GptMiniImpl(int64_t vocab, int64_t context);
  at::Tensor forward(const at::Tensor& bytes);  // [B, T] int64, T <= context

 private:
  torch::nn::Embedding tokens_, positions_;
  std::vector<TransformerBlock> blocks_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear head_;
};
TORCH_MODULE(GptMini);

Model make_gpt_mini(const ModelOptions& options);

}  // namespace hpqf::models
