// The ops of a workload under a plan: which formats meet in each product, and how many bytes move.
#pragma once
#include <cstdint>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/cost/device_rates.h"
#include "hpqf/cost/workload.h"
#include "hpqf/plan/plan.h"

namespace hpqf::cost {

struct PlannedOp {
  const Op* op = nullptr;
  LayerPrecision precision;
  double activation_bytes = 4;  // of an element that this op reads or writes as an activation
};

// Ops without a product keep their activations in the format of the product before them; softmax and norms compute in
// fp32 on them. Where `device` is given and only emulates the forward product of a layer, its activations stay fp32.
// The result points into `work`.
HPQF_API std::vector<PlannedOp> planned(const Workload& work, const PrecisionPlan& plan,
                                        const DeviceRates* device = nullptr);

enum class Product : uint8_t { forward, dgrad, wgrad };

struct ProductCost {
  Format a = Format::fp32, b = Format::fp32;  // operands
  double flops = 0;                           // for the whole batch
  double a_elements = 0, b_elements = 0;
  double bytes = 0;       // operands read, result written
  double cast_bytes = 0;  // rounding operands that do not lie in their format yet
};
// What one product of `op` costs for `batch` samples; flops 0 when the op has no such product.
HPQF_API ProductCost product_cost(const PlannedOp& op, Product product, double batch);

}  // namespace hpqf::cost
