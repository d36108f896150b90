// Rounding of single tensors.
#include <torch/csrc/utils/pybind.h>
// (torch's header comes first: it brings the casters for tensors.)
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include "bindings.h"
#include "hpqf/base/error.h"
#include "hpqf/kernels/quantize.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {
namespace {

at::Tensor quantize_dequantize(const at::Tensor& tensor, const std::string& format, int64_t axis) {
  if (tensor.scalar_type() != at::kFloat || tensor.layout() != at::kStrided)
    throw Error("quantize_dequantize of a " + std::string(c10::toString(tensor.scalar_type())) + " tensor",
                "dense float32 tensors", "convert it first: tensor.float()");
  const BlockFormat block = formats::parse_block_format(format);
  const int64_t dims = std::max<int64_t>(tensor.dim(), 1);
  if (axis < -dims || axis >= dims)
    throw Error("axis " + std::to_string(axis) + " of a tensor with " + std::to_string(tensor.dim()) + " dimensions",
                std::to_string(-dims) + " to " + std::to_string(dims - 1), "name the axis along which blocks run");
  py::gil_scoped_release release;
  c10::NoGradGuard no_grad;
  const at::Tensor in = tensor.detach().to(at::kCPU).contiguous();
  at::Tensor out = at::empty_like(in);
  kernels::BlockLayout layout{1, 1, 1};
  if (in.dim() > 0) {
    axis = axis < 0 ? axis + dims : axis;
    layout.axis = in.size(axis);
    for (int64_t d = 0; d < in.dim(); ++d) (d < axis ? layout.outer : layout.inner) *= d == axis ? 1 : in.size(d);
  }
  if (in.numel() > 0)
    kernels::quantize_dequantize(in.const_data_ptr<float>(), out.mutable_data_ptr<float>(), layout, block);
  return out.to(tensor.device());
}

}  // namespace

void bind_rounding(py::module_& m) {
  m.def("quantize_dequantize", &quantize_dequantize, "tensor"_a, "format"_a, "axis"_a = -1,
        "The float32 tensor rounded to a block format such as 'int8[1x64]' and back; blocks run along `axis`.");
}

}  // namespace hpqf::python
