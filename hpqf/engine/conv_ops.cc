// Kernels of the convolutions: 1-d, 2-d, 3-d, plain and transposed, padding as numbers or as a word.
#include "hpqf/engine/gemm.h"  // first: the _ops.h headers lean on ATen/core/Tensor.h

#include <ATen/ops/conv1d_ops.h>
#include <ATen/ops/conv2d_ops.h>
#include <ATen/ops/conv3d_ops.h>
#include <ATen/ops/conv_transpose1d_ops.h>
#include <ATen/ops/conv_transpose2d_ops.h>
#include <ATen/ops/conv_transpose3d_ops.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_ops.h>

#include <vector>

#include "hpqf/engine/ops.h"

namespace hpqf::engine {
namespace {

using at::Tensor;
using OptTensor = std::optional<Tensor>;
using c10::SymInt;
using c10::SymIntArrayRef;
using namespace at::_ops;  // NOLINT: only names of op structs

struct Geometry {
  SymIntArrayRef stride, padding, dilation, output_padding;
  bool transposed = false;
  SymInt groups = 1;
  bool numeric_padding = true;  // padding="same" may pad one side more, which no single number says
};

double kernel_size(const Tensor& w) {
  double k = 1;
  for (int64_t d = 2; d < w.dim(); ++d) k *= double(w.size(d));
  return k;
}

// 2 FLOPs per multiply-add. Each output (transposed: input) element meets channels_per_group * kernel weights.
double conv_flops(const Tensor& x, const Tensor& w, const Geometry& g, double output_elements) {
  if (w.dim() < 2) return 0;
  return 2 * double(w.size(1)) * kernel_size(w) * (g.transposed ? double(x.numel()) : output_elements);
}

// Of spatial dimension i; one value may stand for all of them.
int64_t value_at(SymIntArrayRef v, int64_t i, int64_t otherwise) {
  return v.empty() ? otherwise : v[v.size() == 1 ? 0 : size_t(i)].guard_int(__FILE__, __LINE__);
}

double output_elements(const Tensor& x, const Tensor& w, const Geometry& g) {
  if (g.transposed || x.dim() < w.dim() - 1) return 0;
  const int64_t spatial = w.dim() - 2;
  double n = double(w.size(0)) * (x.dim() == w.dim() ? double(x.size(0)) : 1);
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t in = x.size(x.dim() - spatial + i), k = w.size(2 + i), dil = value_at(g.dilation, i, 1),
                  s = value_at(g.stride, i, 1);
    const int64_t reach = dil * (k - 1);
    const int64_t padded =
        g.numeric_padding ? in + 2 * value_at(g.padding, i, 0) : in + (g.padding.empty() ? 0 : reach);
    n *= double(std::max<int64_t>(0, (padded - reach - 1) / s + 1));
  }
  return n;
}

std::vector<SymInt> expand(SymIntArrayRef v, int64_t n, int64_t otherwise) {
  if (v.empty()) return std::vector<SymInt>(size_t(n), otherwise);
  return v.size() == 1 ? std::vector<SymInt>(size_t(n), v[0]) : v.vec();
}

// A geometry that outlives the call.
struct Args {
  std::vector<SymInt> stride, padding, dilation, output_padding;
  bool transposed;
  SymInt groups;
};
std::shared_ptr<const Args> keep(const Geometry& g, int64_t n) {
  return std::make_shared<const Args>(Args{expand(g.stride, n, 1), expand(g.padding, n, 0), expand(g.dilation, n, 1),
                                           expand(g.output_padding, n, 0), g.transposed, g.groups});
}

// For padding as numbers.
Repeat repeat_conv(const Tensor& w, const Geometry& g) {
  return {[args = keep(g, w.dim() - 2)](const Tensor& a, const Tensor& b) {
            const bool batched = a.dim() == b.dim();
            Tensor y = convolution::call(batched ? a : a.unsqueeze(0), b, {}, args->stride, args->padding,
                                         args->dilation, args->transposed, args->output_padding, args->groups);
            return batched ? y : y.squeeze(0);
          },
          {}};
}

std::optional<BackwardFormulas> conv_formulas(const Tensor& x, const Tensor& w, const Geometry& g) {
  if (!g.numeric_padding || x.dim() != w.dim()) return std::nullopt;  // unbatched inputs keep autograd's own node
  auto args = keep(g, w.dim() - 2);
  auto backward = [args](const Tensor& grad, const Tensor& x, const Tensor& w, std::array<bool, 3> mask) {
    return convolution_backward::call(grad, x, w, std::nullopt, args->stride, args->padding, args->dilation,
                                      args->transposed, args->output_padding, args->groups, mask);
  };
  // convolution_backward reads only the shape of the operand whose gradient it computes.
  return BackwardFormulas{
      [backward, x = x.detach()](const Tensor& grad, const Tensor& w) {
        return std::get<0>(backward(grad, x, w, {true, false, false}));
      },
      [backward, w = w.detach()](const Tensor& grad, const Tensor& x) {
        return std::get<1>(backward(grad, x, w, {false, true, false}));
      },
      [](const Tensor& grad) {
        std::vector<int64_t> dims{0};
        for (int64_t d = 2; d < grad.dim(); ++d) dims.push_back(d);
        return grad.sum(dims);
      },
  };
}

// The shape our integer kernels know, or why they do not.
std::optional<kernels::ConvShape> integer_shape(const Tensor& x, const Tensor& w, const Geometry& g,
                                                std::string_view& why) {
  const int64_t n = w.dim() - 2;
  why = g.transposed         ? "transposed convolutions are not built for integers"
        : n < 1 || n > 2     ? "3-d convolutions are not built for integers"
        : x.dim() != w.dim() ? "an input without batch axis"
        : !g.numeric_padding ? "padding given as a word"
                             : "";
  if (!why.empty()) return std::nullopt;
  auto at = [n](SymIntArrayRef v, int64_t i, int64_t otherwise) {  // i: 0 height, 1 width; 1-d is height 1
    return n == 1 && i == 0 ? otherwise : value_at(v, i - (2 - n), otherwise);
  };
  kernels::ConvShape s;
  s.batch = x.size(0), s.in_channels = x.size(1), s.out_channels = w.size(0);
  s.height = n == 2 ? x.size(2) : 1, s.width = x.size(-1);
  s.kernel_h = n == 2 ? w.size(2) : 1, s.kernel_w = w.size(-1);
  s.stride_h = at(g.stride, 0, 1), s.stride_w = at(g.stride, 1, 1);
  s.padding_h = at(g.padding, 0, 0), s.padding_w = at(g.padding, 1, 0);
  s.dilation_h = at(g.dilation, 0, 1), s.dilation_w = at(g.dilation, 1, 1);
  s.groups = g.groups.guard_int(__FILE__, __LINE__);
  // What does not fit together is torch's to refuse.
  const bool fits = s.groups > 0 && s.in_channels == w.size(1) * s.groups && s.out_channels % s.groups == 0 &&
                    s.stride_h > 0 && s.stride_w > 0 && s.dilation_h > 0 && s.dilation_w > 0 && s.padding_h >= 0 &&
                    s.padding_w >= 0 && s.out_height() > 0 && s.out_width() > 0 && x.numel() > 0 && w.numel() > 0;
  if (!fits) why = "an empty or impossible convolution";
  return fits ? std::optional(s) : std::nullopt;
}

template <class Torch, class MakeRepeat>
Tensor run_conv(std::string_view op, const Tensor& x, const Tensor& w, const OptTensor& bias, const Geometry& geometry,
                Torch torch, MakeRepeat repeat) {
  OwnKeyOff off;
  Layer* layer = find_layer(w);
  if (!layer) return torch(x, w, bias);
  std::string_view unknown;
  const auto shape = integer_shape(x, w, geometry, unknown);
  const int64_t channels = -(w.dim() - 1);  // from the end, so that unbatched inputs work too
  return run_gemm({.op = op,
                   .a = x,
                   .b = w,
                   .bias = bias,
                   .axis_a = channels,
                   .axis_b = geometry.transposed ? 0 : 1,
                   .axis_y = channels,
                   .b_is_weight = true,
                   .is_linear = false,
                   .flops = conv_flops(x, w, geometry, output_elements(x, w, geometry)),
                   .conv = shape ? &*shape : nullptr,
                   .conv_unknown = unknown,
                   .torch = [&](const Tensor& a, const Tensor& b, const OptTensor& c) { return torch(a, b, c); },
                   .formulas = [&] { return conv_formulas(x, w, geometry); },
                   .repeat = repeat},
                  *layer);
}
template <class Torch>
Tensor run_conv(std::string_view op, const Tensor& x, const Tensor& w, const OptTensor& bias, const Geometry& geometry,
                Torch torch) {
  return run_conv(op, x, w, bias, geometry, torch, [&] { return repeat_conv(w, geometry); });
}

// conv1d/2d/3d share one signature, and so do their padding="same" forms and the transposed ones.
template <class OP>
Tensor plain(const Tensor& x, const Tensor& w, const OptTensor& bias, SymIntArrayRef stride, SymIntArrayRef padding,
             SymIntArrayRef dilation, SymInt groups) {
  return run_conv(OP::name + 6, x, w, bias, {stride, padding, dilation, {}, false, groups},
                  [&](const Tensor& a, const Tensor& b, const OptTensor& c) {
                    return OP::call(a, b, c, stride, padding, dilation, groups);
                  });
}
template <class OP>
Tensor worded(const Tensor& x, const Tensor& w, const OptTensor& bias, SymIntArrayRef stride, c10::string_view padding,
              SymIntArrayRef dilation, SymInt groups) {
  const SymInt same[] = {1};
  Geometry geometry{stride, padding == "same" ? SymIntArrayRef(same) : SymIntArrayRef(), dilation, {}, false, groups,
                    false};
  return run_conv(
      OP::name + 6, x, w, bias, geometry,
      [&](const Tensor& a, const Tensor& b, const OptTensor& c) {
        return OP::call(a, b, c, stride, padding, dilation, groups);
      },
      [&] {
        return Repeat{
            [word = std::string(padding), args = keep(geometry, w.dim() - 2)](const Tensor& a, const Tensor& b) {
              return OP::call(a, b, {}, args->stride, word, args->dilation, args->groups);
            },
            {}};
      });
}
template <class OP>
Tensor transposed(const Tensor& x, const Tensor& w, const OptTensor& bias, SymIntArrayRef stride,
                  SymIntArrayRef padding, SymIntArrayRef output_padding, SymInt groups, SymIntArrayRef dilation) {
  return run_conv(OP::name + 6, x, w, bias, {stride, padding, dilation, output_padding, true, groups},
                  [&](const Tensor& a, const Tensor& b, const OptTensor& c) {
                    return OP::call(a, b, c, stride, padding, output_padding, groups, dilation);
                  });
}

Tensor general(const Tensor& x, const Tensor& w, const OptTensor& bias, SymIntArrayRef stride, SymIntArrayRef padding,
               SymIntArrayRef dilation, bool transposed, SymIntArrayRef output_padding, SymInt groups) {
  return run_conv("convolution", x, w, bias, {stride, padding, dilation, output_padding, transposed, groups},
                  [&](const Tensor& a, const Tensor& b, const OptTensor& c) {
                    return convolution::call(a, b, c, stride, padding, dilation, transposed, output_padding, groups);
                  });
}

}  // namespace

void register_conv_ops(torch::Library& aten) {
  intercept<conv1d>(aten, plain<conv1d>);
  intercept<conv2d>(aten, plain<conv2d>);
  intercept<conv3d>(aten, plain<conv3d>);
  intercept<conv1d_padding>(aten, worded<conv1d_padding>);
  intercept<conv2d_padding>(aten, worded<conv2d_padding>);
  intercept<conv3d_padding>(aten, worded<conv3d_padding>);
  intercept<conv_transpose1d>(aten, transposed<conv_transpose1d>);
  intercept<conv_transpose2d_input>(aten, transposed<conv_transpose2d_input>);
  intercept<conv_transpose3d_input>(aten, transposed<conv_transpose3d_input>);
  intercept<convolution>(aten, general);
}

}  // namespace hpqf::engine
