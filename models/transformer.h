// An encoder block: attention over the whole sequence and a two-layer perceptron, each on a residual stream.
#pragma once
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <optional>

namespace hpqf::models {

enum class NormPlace : uint8_t {
  before,  // x + f(norm(x)): vision transformers, GPT-2
  after,   // norm(x + f(x)): BERT
};

class EncoderBlockImpl : public torch::nn::Module {
 public:
  EncoderBlockImpl(int64_t width, int64_t heads, int64_t hidden, NormPlace norm);
  // x [B, T, width]. `attend` [B, 1, 1, T], bool: which positions may be looked at; none: all.
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& attend = std::nullopt);

 private:
  at::Tensor attention(const at::Tensor& x, const std::optional<at::Tensor>& attend);
  at::Tensor perceptron(const at::Tensor& x);

  int64_t heads_;
  NormPlace place_;
  torch::nn::Linear qkv_, proj_, up_, down_;
  torch::nn::LayerNorm norm1_, norm2_;
};
TORCH_MODULE(EncoderBlock);

// 0.02 for matrices and tables, zero for biases, as in BERT and ViT; norms are left alone.
void initialise_transformer(torch::nn::Module& model);

}  // namespace hpqf::models
