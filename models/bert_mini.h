// A small BERT for classification: the mini configuration of Turc et al. (2019), 4 layers of width 256 with 4 heads, on
// a vocabulary of its own. No pre-training: it learns the task from random weights.
#pragma once
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <vector>

#include "models/model.h"
#include "models/transformer.h"

namespace hpqf::models {

class BertMiniImpl : public torch::nn::Module {
 public:
  BertMiniImpl(int64_t vocab, int64_t context, int64_t classes);
  at::Tensor forward(const at::Tensor& tokens);  // [B, T] int64, T <= context; 0 is padding, the first token stays

 private:
  torch::nn::Embedding tokens_, positions_;
  torch::nn::LayerNorm norm_;
  std::vector<TransformerBlock> blocks_;
  torch::nn::Linear pooler_, classifier_;
};
TORCH_MODULE(BertMini);

Model make_bert_mini(const ModelOptions& options);

}  // namespace hpqf::models
