#include "hpqf/engine/probe.h"

#include "hpqf/engine/rounding.h"

namespace hpqf::engine {

at::Tensor run_probed(Probe& probe, const GemmCall& call, const at::Tensor& a, Layer& layer) {
  at::Tensor y = call.torch(a, call.b, call.bias);
  const at::Tensor x = a.detach(), b = call.b.detach();
  const LayerRef owner = ref(&layer);
  const int64_t axis_a = call.axis_a, axis_b = call.axis_b;
  Repeat repeat = call.repeat();
  ProbedOp op{.op = call.op, .input = x, .input_axis = axis_a, .weight_axis = axis_b, .macs = call.flops / 2};
  if (call.b_is_weight) {
    op.weight = b;
    op.weight_product = [product = repeat.product, x](const at::Tensor& delta) { return product(x, delta); };
  }
  auto error = [owner](const at::Tensor& t, const BlockFormat& f, int64_t axis) {
    return round(t, f, axis, *owner, plan::Role::input).sub(t);
  };
  if (repeat.input_error) {
    op.input_error = [error = repeat.input_error, owner](const BlockFormat& f) { return error(f, *owner); };
  } else if (call.b_is_weight) {
    op.input_error = [=, product = repeat.product](const BlockFormat& f) { return product(error(x, f, axis_a), b); };
  } else {  // both operands are rounded: (x + dx)(b + db) - x b = dx (b + db) + x db, without cancellation
    op.input_error = [=, product = repeat.product](const BlockFormat& f) {
      const at::Tensor db = error(b, f, axis_b);
      return product(error(x, f, axis_a), b.add(db)).add(product(x, db));
    };
  }
  return probe.on_op(layer, op, std::move(y));
}

}  // namespace hpqf::engine
