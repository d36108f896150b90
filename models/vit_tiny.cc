#include "models/vit_tiny.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "hpqf/base/error.h"
#include "models/seed.h"

namespace hpqf::models {
namespace {
constexpr int64_t kPatch = 4, kWidth = 96, kHeads = 3, kBlocks = 6;
}

VitTinyImpl::VitTinyImpl(int64_t in_channels, int64_t classes, int64_t image)
    : image_(image),
      patches_(torch::nn::Conv2dOptions(in_channels, kWidth, kPatch).stride(kPatch)),
      norm_(layer_norm(kWidth)),
      head_(kWidth, classes) {
  if (image < kPatch || image % kPatch != 0) {
    throw Error(fmt::format("vit-tiny on images of {0} x {0}", image),
                fmt::format("sizes that patches of {0} x {0} cover", kPatch), "pad or crop the images");
  }
  const int64_t tokens = (image / kPatch) * (image / kPatch) + 1;
  register_module("patches", patches_);
  class_token_ = register_parameter("class_token", at::empty({1, 1, kWidth}));
  positions_ = register_parameter("positions", at::empty({1, tokens, kWidth}));
  blocks_ = add_blocks(*this, kBlocks, {.width = kWidth, .heads = kHeads});
  register_module("norm", norm_);
  register_module("head", head_);
  initialise_transformer(*this);
}

at::Tensor VitTinyImpl::forward(const at::Tensor& images) {
  if (images.size(2) != image_ || images.size(3) != image_) {
    throw Error(fmt::format("vit-tiny on images of {} x {}", images.size(2), images.size(3)),
                fmt::format("{0} x {0}, as it was made for", image_), "make the model for these images");
  }
  const at::Tensor patches = patches_(images).flatten(2).transpose(1, 2);
  at::Tensor x = at::cat({class_token_.expand({images.size(0), 1, kWidth}), patches}, 1) + positions_;
  for (TransformerBlock& block : blocks_) x = block(x);
  return head_(norm_(x.select(1, 0)));
}

Model make_vit_tiny(const ModelOptions& options) {
  seed_weights(options.seed);
  VitTiny model(options.in_channels, options.classes, options.image);
  return {"vit-tiny", Task::images, model.ptr(), [model](const at::Tensor& x) mutable { return model->forward(x); }};
}

}  // namespace hpqf::models
