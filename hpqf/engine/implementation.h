// How a GEMM with given formats can run: one list, best first, each with yes or the reason why not.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <string_view>

#include "hpqf/engine/layer.h"
#include "hpqf/kernels/gemm/integer_conv.h"

namespace hpqf::engine {

struct GemmProblem {
  c10::DeviceType device;
  BlockFormat a, b, dgrad, wgrad;
  bool b_is_weight = false;
  bool is_linear = false;
  int64_t m = 0, n = 0, k = 0;  // of the linear form; 0 otherwise
  bool needs_grad = false;
  const kernels::ConvShape* conv = nullptr;  // as in GemmCall
  std::string_view conv_unknown = "";
};

enum class Method : uint8_t {
  torch_fp32,    // torch's own op, untouched
  torch_cast,    // operands cast to bf16/fp16, torch's op on them
  torch_scaled,  // fp8 through torch._scaled_mm
  torch_int,     // int8 through torch._int_mm
  integer,       // our integer GEMM on CPUs: int8 and int12, one scale a block
  emulated,      // operands rounded exactly, fp32 arithmetic
};

struct Answer {
  enum : uint8_t { yes, no, other_formats } is;  // other_formats: made for other formats, not worth a word in a report
  std::string reason;                            // of `no`
};

struct GemmImplementation {
  const char* name;  // as the audit prints it
  Method method;
  bool native;  // low-precision arithmetic really used
  // `forced`: asked for by name, so only what cannot work is refused, not what is slow.
  Answer (*accepts)(const GemmProblem&, bool forced);
};
std::span<const GemmImplementation> gemm_implementations();

struct Choice {
  const GemmImplementation* implementation;
  std::string reason;  // why every better one was refused: "torch.bf16: cpu has no avx512_bf16"
};
Choice choose(const GemmProblem& problem, std::string_view forced);

}  // namespace hpqf::engine
