// A small vision transformer (Dosovitskiy et al., 2020): patches of 4 x 4, a class token, learned positions, pre-norm
// blocks.
#pragma once
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <vector>

#include "models/model.h"
#include "models/transformer.h"

namespace hpqf::models {

class VitTinyImpl : public torch::nn::Module {
 public:
  // Error when `image` is not a multiple of 4.
  VitTinyImpl(int64_t in_channels, int64_t classes, int64_t image);
  at::Tensor forward(const at::Tensor& images);  // [B, C, image, image]; Error for other sizes

 private:
  int64_t image_;
  torch::nn::Conv2d patches_;
  at::Tensor class_token_, positions_;
  std::vector<TransformerBlock> blocks_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear head_;
};
TORCH_MODULE(VitTiny);

Model make_vit_tiny(const ModelOptions& options);

}  // namespace hpqf::models
