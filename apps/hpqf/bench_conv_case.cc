#include "apps/hpqf/bench_conv_case.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/randn.h>

#include "apps/hpqf/bench_options.h"

namespace hpqf::app {
namespace {

using kernels::ConvShape;
using kernels::ImageLayout;

constexpr ConvForm kForms[] = {
    {"forward", "y = conv(x, w)", ConvProduct::forward},
    {"dgrad", "input gradient: dx of dy and w", ConvProduct::dgrad},
    {"wgrad", "weight gradient: dw of x and dy", ConvProduct::wgrad},
};

at::Tensor normal(at::IntArrayRef sizes, uint64_t seed, ImageLayout layout) {
  const at::Tensor t = at::randn(sizes, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kFloat));
  return t.contiguous(layout == ImageLayout::channels_last ? at::MemoryFormat::ChannelsLast
                                                           : at::MemoryFormat::Contiguous);
}

}  // namespace

std::span<const ConvForm> conv_forms() { return kForms; }

const ConvForm& find_conv_form(const std::string& name) {
  for (const ConvForm& form : kForms) {
    if (form.name == name) return form;
  }
  refuse("forms", name, "forward, dgrad (input gradient), wgrad (weight gradient), separated by commas");
}

ConvCase::ConvCase(const ConvShape& s, ConvProduct product, ImageLayout layout)
    : shape_(s), product_(product), layout_(layout) {
  x_ = normal({s.batch, s.in_channels, s.height, s.width}, 1, layout);
  w_ = normal({s.out_channels, s.in_channels / s.groups, s.kernel_h, s.kernel_w}, 2, layout);
  dy_ = normal({s.batch, s.out_channels, s.out_height(), s.out_width()}, 3, layout);
  result_ = at::empty_like(product == ConvProduct::forward ? dy_ : product == ConvProduct::dgrad ? x_ : w_);
}

at::Tensor ConvCase::torch(const at::Tensor& x, const at::Tensor& w, const at::Tensor& dy) const {
  const ConvShape& s = shape_;
  const int64_t stride[] = {s.stride_h, s.stride_w}, padding[] = {s.padding_h, s.padding_w},
                dilation[] = {s.dilation_h, s.dilation_w}, none[] = {0, 0};
  if (product_ == ConvProduct::forward)
    return at::convolution(x, w, std::nullopt, stride, padding, dilation, false, none, s.groups);
  const bool dgrad = product_ == ConvProduct::dgrad;
  const auto [dx, dw, db] = at::convolution_backward(dy, x, w, std::nullopt, stride, padding, dilation, false, none,
                                                     s.groups, {dgrad, !dgrad, false});
  return dgrad ? dx : dw;
}

at::Tensor ConvCase::torch_bf16() {
  if (!x_bf16_.defined())
    x_bf16_ = x_.to(at::kBFloat16), w_bf16_ = w_.to(at::kBFloat16), dy_bf16_ = dy_.to(at::kBFloat16);
  return torch(x_bf16_, w_bf16_, dy_bf16_);
}

const at::Tensor& ConvCase::integer(const kernels::GemmPath& path, const kernels::GemmBlocks& blocks) {
  const auto view = [&](const at::Tensor& t) { return kernels::ConstImages{t.const_data_ptr<float>(), layout_}; };
  const kernels::Images out{result_.mutable_data_ptr<float>(), layout_};
  if (product_ == ConvProduct::wgrad) {
    kernels::conv_weight_gradient(path, shape_, view(x_), {}, view(dy_), {}, blocks, out);
    return result_;
  }
  const bool forward = product_ == ConvProduct::forward;
  const auto pass = forward ? kernels::ConvPass::forward : kernels::ConvPass::input_gradient;
  // Kept between calls, as the engine keeps it between steps; torch aligns to 64 bytes.
  const int64_t bytes = kernels::conv_weight_bytes(shape_, pass, blocks);
  if (!packed_.defined() || packed_.numel() < bytes) packed_ = at::empty({bytes}, at::TensorOptions(at::kByte));
  kernels::conv_pack_weights(path, shape_, pass, view(w_), blocks, {}, packed_.mutable_data_ptr());
  if (forward) {
    kernels::conv_forward(path, shape_, view(x_), {}, packed_.const_data_ptr(), blocks, out);
  } else {
    kernels::conv_input_gradient(path, shape_, view(dy_), {}, packed_.const_data_ptr(), blocks, out);
  }
  return result_;
}

double ConvCase::flops() const {
  return 2.0 * static_cast<double>(dy_.numel()) * static_cast<double>(w_.numel() / shape_.out_channels);
}

at::Tensor ConvCase::part(const at::Tensor& result) const {
  if (product_ != ConvProduct::wgrad) return result.narrow(0, 0, 1);
  const int64_t each = shape_.out_channels / shape_.groups;
  return result.index_select(0, at::arange(0, shape_.out_channels, each, at::TensorOptions(at::kLong)));
}

at::Tensor ConvCase::exact() const {
  const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
  if (product_ != ConvProduct::wgrad) return torch(wide(x_.narrow(0, 0, 1)), wide(w_), wide(dy_.narrow(0, 0, 1)));
  const int64_t each = shape_.out_channels / shape_.groups;
  const at::Tensor some = at::arange(0, shape_.out_channels, each, at::TensorOptions(at::kLong));
  return torch(wide(x_), wide(w_.index_select(0, some)), wide(dy_.index_select(1, some)));
}

double ConvCase::error(const at::Tensor& result) {
  if (!exact_.defined()) exact_ = exact();
  const at::Tensor difference = part(result).to(at::kDouble).sub(exact_);
  return difference.norm().item<double>() / exact_.norm().item<double>();
}

}  // namespace hpqf::app
