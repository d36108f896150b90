// What transformers are made of: attention and a two-layer perceptron, each on a residual stream.
#pragma once
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace hpqf::models {

enum class NormPlace : uint8_t {
  before,  // x + f(norm(x)): GPT-2, vision transformers
  after,   // norm(x + f(x)): BERT
};

class AttentionImpl : public torch::nn::Module {
 public:
  AttentionImpl(int64_t width, int64_t heads, bool causal);
  // x [B, T, width]. `attend` [B, 1, 1, T], bool: which positions may be looked at; none: all, or those before when
  // causal.
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& attend = std::nullopt);

 private:
  int64_t heads_;
  bool causal_;
  torch::nn::Linear qkv_, proj_;
};
TORCH_MODULE(Attention);

struct BlockOptions {
  int64_t width, heads;
  NormPlace norm = NormPlace::before;
  bool causal = false;
};

class TransformerBlockImpl : public torch::nn::Module {
 public:
  explicit TransformerBlockImpl(const BlockOptions& options);  // the perceptron is 4 times as wide
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& attend = std::nullopt);

 private:
  at::Tensor perceptron(const at::Tensor& x);

  NormPlace place_;
  torch::nn::LayerNorm norm1_, norm2_;
  Attention attention_;
  torch::nn::Linear up_, down_;
};
TORCH_MODULE(TransformerBlock);

torch::nn::LayerNorm layer_norm(int64_t width);

// `count` of them, registered with `model` as the list "blocks".
std::vector<TransformerBlock> add_blocks(torch::nn::Module& model, int64_t count, const BlockOptions& options);

// Normal with 0.02 for matrices and tables, as in GPT-2, BERT and ViT; zero for biases; norms are left alone. The
// matrices that write into the residual stream ("proj", "down") are divided by `residual`.
void initialise_transformer(torch::nn::Module& model, double residual = 1);

}  // namespace hpqf::models
