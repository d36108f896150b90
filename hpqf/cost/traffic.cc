#include "hpqf/cost/traffic.h"

#include "hpqf/cost/memory.h"

namespace hpqf::cost {
namespace {

bool is_low(Format format) { return format != Format::fp32 && format != Format::tf32; }

// A product is low only when both operands are, and when the device computes in them.
double bytes_behind(const LayerPrecision& precision, const DeviceRates* device) {
  const Format a = precision.input.format, b = precision.weight.format;
  const bool low = is_low(a) && is_low(b) && !(device && device->arithmetic(a, b).emulated);
  return activation_bytes(low ? a : Format::fp32);
}

// Bytes to bring `elements` that lie at `from` bytes each into `format`: read once, written once.
double cast(double elements, double from, const BlockFormat& format) {
  const double to = bytes_per_element(format);
  return is_low(format.format) && to < from ? elements * (from + to) : 0;
}

}  // namespace

std::vector<PlannedOp> planned(const Workload& work, const PrecisionPlan& plan, const DeviceRates* device) {
  std::vector<PlannedOp> result;
  result.reserve(work.ops.size());
  // What comes before the first product (an embedding) has the format of that product.
  double bytes = 4;
  for (const Op& op : work.ops) {
    if (op.flops == 0) continue;
    bytes = bytes_behind(plan.at(op.layer, op.kind), device);
    break;
  }
  for (const Op& op : work.ops) {
    const LayerPrecision precision = plan.at(op.layer, op.kind);
    if (op.flops > 0) bytes = bytes_behind(precision, device);
    result.push_back({&op, precision, bytes});
  }
  return result;
}

ProductCost product_cost(const PlannedOp& planned, Product product, double batch) {
  const Op& op = *planned.op;
  const LayerPrecision& p = planned.precision;
  if (op.flops == 0 || (product == Product::dgrad && !op.dgrad) || (product == Product::wgrad && !op.wgrad)) return {};
  ProductCost cost;
  cost.flops = batch * op.flops;
  const double act = planned.activation_bytes;
  const double second = op.weight + batch * op.b;  // a parameter, or an activation (keys and values)
  double b_from = op.weight > 0 ? 4 : act;
  BlockFormat a, b;
  double a_elements = 0, b_elements = 0, written = 0;
  switch (product) {
    case Product::forward:
      a = p.input, b = p.weight;
      a_elements = batch * op.a, b_elements = second;
      written = batch * op.y * act;
      // Rounded once here; the backward products find them rounded.
      cost.cast_bytes = cast(a_elements, act, a) + cast(b_elements, b_from, b);
      break;
    case Product::dgrad:
      a = p.dgrad, b = p.weight;
      a_elements = batch * op.y, b_elements = second;
      written = batch * op.a * act;
      cost.cast_bytes = cast(a_elements, act, a);
      break;
    case Product::wgrad:
      a = p.wgrad, b = p.input;
      a_elements = batch * op.y, b_elements = batch * op.a, b_from = act;
      written = op.weight * 4 + batch * op.b * act;  // gradients of parameters accumulate in fp32
      cost.cast_bytes = p.wgrad == p.dgrad && op.dgrad ? 0 : cast(a_elements, act, a);
      break;
  }
  cost.a = a.format;
  cost.b = b.format;
  // An fp32 operand against a low one makes the whole product fp32, on unrounded operands.
  const bool low = is_low(a.format) && is_low(b.format);
  if (!low && (is_low(a.format) || is_low(b.format))) cost.a = cost.b = Format::fp32;
  cost.a_elements = a_elements;
  cost.b_elements = b_elements;
  cost.bytes =
      a_elements * (low ? bytes_per_element(a) : act) + b_elements * (low ? bytes_per_element(b) : b_from) + written;
  return cost;
}

}  // namespace hpqf::cost
