#include "models/resnet20.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/relu.h>
#include <torch/nn/init.h>
#include <torch/utils.h>

#include "models/seed.h"

namespace hpqf::models {
namespace {

torch::nn::Conv2d conv3x3(int64_t in, int64_t out, int64_t stride) {
  // No bias: the norm behind every convolution has one.
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
  torch::nn::init::kaiming_normal_(conv->weight, 0.0, torch::kFanOut, torch::kReLU);
  return conv;
}

torch::nn::Sequential stage(int64_t in, int64_t out, int64_t stride) {
  return torch::nn::Sequential(BasicBlock(in, out, stride), BasicBlock(out, out, 1), BasicBlock(out, out, 1));
}

}  // namespace

BasicBlockImpl::BasicBlockImpl(int64_t in, int64_t out, int64_t stride)
    : stride_(stride),
      extra_channels_(out - in),
      conv1_(conv3x3(in, out, stride)),
      conv2_(conv3x3(out, out, 1)),
      bn1_(out),
      bn2_(out) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("conv2", conv2_);
  register_module("bn2", bn2_);
}

at::Tensor BasicBlockImpl::forward(const at::Tensor& x) {
  at::Tensor y = at::relu(bn1_(conv1_(x)));
  y = bn2_(conv2_(y));
  at::Tensor shortcut = x;
  if (stride_ != 1 || extra_channels_ != 0) {
    shortcut = x.slice(2, 0, c10::nullopt, stride_).slice(3, 0, c10::nullopt, stride_);
    const int64_t before = extra_channels_ / 2;
    shortcut = at::constant_pad_nd(shortcut, {0, 0, 0, 0, before, extra_channels_ - before});
  }
  return at::relu(y + shortcut);
}

ResNet20Impl::ResNet20Impl(int64_t in_channels, int64_t classes)
    : conv1_(conv3x3(in_channels, 16, 1)),
      bn1_(16),
      layer1_(stage(16, 16, 1)),
      layer2_(stage(16, 32, 2)),
      layer3_(stage(32, 64, 2)),
      fc_(64, classes) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("layer1", layer1_);
  register_module("layer2", layer2_);
  register_module("layer3", layer3_);
  register_module("fc", fc_);
}

at::Tensor ResNet20Impl::forward(const at::Tensor& x) {
  at::Tensor y = at::relu(bn1_(conv1_(x)));
  y = layer3_->forward(layer2_->forward(layer1_->forward(y)));
  return fc_(y.mean({2, 3}));
}

Model make_resnet20(const ModelOptions& options) {
  seed_weights(options.seed);
  ResNet20 model(options.in_channels, options.classes);
  return {"resnet20", Task::images, model.ptr(), [model](const at::Tensor& x) mutable { return model->forward(x); }};
}

}  // namespace hpqf::models
