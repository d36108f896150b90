// A byte-level language model on a two-layer LSTM. The state starts at zero in every window.
#pragma once
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include "models/model.h"

namespace hpqf::models {

class LstmLmImpl : public torch::nn::Module {
 public:
  explicit LstmLmImpl(int64_t vocab);
  at::Tensor forward(const at::Tensor& bytes);  // [B, T] int64, any T >= 1

 private:
  torch::nn::Embedding embedding_;
  torch::nn::LSTM lstm_;
  torch::nn::Linear head_;
};
TORCH_MODULE(LstmLm);

Model make_lstm_lm(const ModelOptions& options);

}  // namespace hpqf::models
