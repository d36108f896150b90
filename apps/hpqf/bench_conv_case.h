// One product of a convolution: its operands, the ways to compute it, and how far a result is from the exact one.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <string>

#include "hpqf/kernels/gemm/integer_conv.h"

namespace hpqf::app {

enum class ConvProduct : uint8_t { forward, dgrad, wgrad };
struct ConvForm {
  const char* name;
  const char* meaning;
  ConvProduct product;
};
std::span<const ConvForm> conv_forms();
const ConvForm& find_conv_form(const std::string& name);  // Error with the list of names

// Normal operands in one layout, the same on every construction.
class ConvCase {
 public:
  ConvCase(const kernels::ConvShape& shape, ConvProduct product, kernels::ImageLayout layout);

  at::Tensor torch_fp32() const { return torch(x_, w_, dy_); }
  at::Tensor torch_bf16();  // operands that are bf16 already: no time for casts
  // From fp32: images quantised in every call, to nearest, and so are the weights of a forward or input gradient.
  const at::Tensor& integer(const kernels::GemmPath& path, const kernels::GemmBlocks& blocks);

  double flops() const;
  // Frobenius norm of the difference to the product in fp64, over that product's. Of the forward pass and the gradient
  // of the input, the first image; of the gradient of the weight, the first output channel of each group.
  double error(const at::Tensor& result);

 private:
  at::Tensor torch(const at::Tensor& x, const at::Tensor& w, const at::Tensor& dy) const;
  at::Tensor part(const at::Tensor& result) const;
  at::Tensor exact() const;

  kernels::ConvShape shape_;
  ConvProduct product_;
  kernels::ImageLayout layout_;
  at::Tensor x_, w_, dy_, x_bf16_, w_bf16_, dy_bf16_, result_, packed_, exact_;
};

}  // namespace hpqf::app
