// Which convolutions `hpqf bench conv` times.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "hpqf/kernels/gemm/integer_conv.h"

namespace hpqf::app {

// "16x64x56x128:k3s2g1": images x channels x height (and width) x output channels, kernel, stride, groups. The padding
// is what keeps the size at stride 1: half the kernel.
std::string to_string(const kernels::ConvShape& shape);

// Error when it is not that, has no output, groups that do not divide the channels, an even kernel, or needs more than
// half of the machine's memory. Kernel 3, stride 1 and 1 group may be left out.
kernels::ConvShape parse_conv_shape(const std::string& text);

// The 2-d convolutions of a reference model that the integer kernels know, each once, from one forward pass of
// `batch_size` samples (0: the model's default). Error when the model is unknown or has none.
std::vector<kernels::ConvShape> model_conv_shapes(const std::string& model, int64_t batch_size);

}  // namespace hpqf::app
