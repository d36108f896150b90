// Plan and audit side by side: what each operand of each layer was asked to be, and what it was.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"
#include "hpqf/plan/plan.h"

namespace hpqf::observe {

// The GEMM operands, in the order in which a reader meets them.
enum class Operand : uint8_t { input, weight, dgrad, wgrad };
inline constexpr std::array kOperandNames = {"input", "weight", "dgrad", "wgrad"};
inline constexpr size_t kOperands = kOperandNames.size();

struct OperandFormats {
  std::string requested;  // block format; of the audit where the layer ran, else of the plan; "" when not known
  std::string effective;  // "" when the layer did not run (or nobody audited it)
  bool emulated = false;
  bool mixed = false;          // more than one effective format or arithmetic: that with most FLOPs is shown
  std::string implementation;  // of the same
  std::string reason;          // of the audit: why not as requested, or why not natively
  bool differs() const { return !effective.empty() && !requested.empty() && effective != requested; }
};

struct LayerFormats {
  std::string layer, type;
  int64_t parameters = 0;
  std::array<OperandFormats, kOperands> operands;
  std::string reason;  // of the plan
  double flops = 0, seconds = 0;
};

// Layers with a GEMM: those of kinds that have one, in the order of the model, then others that the audit saw compute
// one. Any of plan and audit may be missing.
HPQF_API std::vector<LayerFormats> layer_formats(const plan::PrecisionPlan* plan, const plan::ModelFacts& facts,
                                                 const AuditReport* audit);

// The element format of a block format's text: "int8" of "int8[1x64]".
HPQF_API std::string element_format(const std::string& block_format);

}  // namespace hpqf::observe
