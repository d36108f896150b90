// ResNet-20 for small images: 3 stages of 3 basic blocks with 16, 32 and 64 channels, parameter-free shortcuts
// (He et al., Deep Residual Learning for Image Recognition, 2015, section 4.2, option A).
#pragma once
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "models/model.h"

namespace hpqf::models {

class BasicBlockImpl : public torch::nn::Module {
 public:
  BasicBlockImpl(int64_t in, int64_t out, int64_t stride);
  at::Tensor forward(const at::Tensor& x);

 private:
  int64_t stride_, extra_channels_;
  torch::nn::Conv2d conv1_, conv2_;
  torch::nn::BatchNorm2d bn1_, bn2_;
};
TORCH_MODULE(BasicBlock);

class ResNet20Impl : public torch::nn::Module {
 public:
  ResNet20Impl(int64_t in_channels, int64_t classes);
  at::Tensor forward(const at::Tensor& x);  // [B, in_channels, H, W], any H and W >= 4

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  torch::nn::Sequential layer1_, layer2_, layer3_;
  torch::nn::Linear fc_;
};
TORCH_MODULE(ResNet20);

Model make_resnet20(const ModelOptions& options);

}  // namespace hpqf::models
