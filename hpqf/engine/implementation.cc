#include "hpqf/engine/implementation.h"

#include <fmt/format.h>

#include <array>

#include "hpqf/base/error.h"
#include "hpqf/engine/native_speed.h"

namespace hpqf::engine {
namespace {

bool is_fp32(const BlockFormat& f) { return f.format == Format::fp32; }

std::string refuse_fp32(const GemmProblem& p, bool) {
  if (is_fp32(p.a) && is_fp32(p.b) && is_fp32(p.dgrad) && is_fp32(p.wgrad)) return "";
  return "the plan asks for a lower format";
}

std::string refuse_cast(const GemmProblem& p, bool forced) {
  const Format f = p.a.format;
  if (f != Format::bf16 && f != Format::fp16) return "casts serve bf16 and fp16 only";
  if (p.b.format != f) return "both operands must have one format";
  if (p.needs_grad && (p.dgrad.format != f || p.wgrad.format != f)) return "the backward GEMMs ask for another format";
  if (forced || p.device != c10::DeviceType::CPU) return "";
  return cpu_slow_reason(f);
}

// torch._scaled_mm: fp8 with one scale a tensor. Backward runs dgrad with e5m2 gradients and wgrad the same way.
std::string refuse_scaled(const GemmProblem& p, bool forced) {
  if (p.a.format != Format::fp8_e4m3 || p.b.format != Format::fp8_e4m3) return "_scaled_mm serves e4m3 operands";
  if (p.a.shape != formats::BlockShape::tensor || p.b.shape != formats::BlockShape::tensor)
    return "one scale a tensor only";
  if (!p.is_linear || !p.b_is_weight) return "linear layers only";
  if (p.needs_grad && (p.dgrad.format != p.wgrad.format || formats::info(p.dgrad.format).bits != 8 ||
                       !formats::info(p.dgrad.format).saturates || formats::info(p.dgrad.format).is_integer))
    return "gradients must be fp8 too";
  if (p.m % 16 || p.n % 16 || p.k % 16) return fmt::format("sizes {}x{}x{} are not multiples of 16", p.m, p.n, p.k);
  if (forced || p.device != c10::DeviceType::CPU) return "";
  return "torch's fp8 GEMM on CPUs without AMX-FP16 converts to fp32 inside";
}

std::string refuse_int(const GemmProblem& p, bool forced) {
  if (p.a.format != Format::int8 || p.b.format != Format::int8) return "_int_mm serves int8 operands";
  if (p.a.shape == formats::BlockShape::vector || p.b.shape == formats::BlockShape::vector)
    return "_int_mm has no scales inside the contraction: ask for int8[row] or int8[tensor]";
  if (!p.is_linear || !p.b_is_weight) return "linear layers only";
  if (p.n % 8 || p.k % 8 || (p.device != c10::DeviceType::CPU && p.m <= 16))
    return fmt::format("sizes {}x{}x{}: rows > 16, the others multiples of 8", p.m, p.n, p.k);
  if (forced || p.device != c10::DeviceType::CPU) return "";
  return "torch._int_mm measured at a thirtieth of fp32's rate on AVX2 and no faster than fp32 on AVX-512";
}

std::string accept(const GemmProblem&, bool) { return ""; }

constexpr std::array kImplementations = {
    GemmImplementation{"torch", Method::torch_fp32, true, refuse_fp32},
    GemmImplementation{"torch.cast", Method::torch_cast, true, refuse_cast},
    GemmImplementation{"torch._scaled_mm", Method::torch_scaled, true, refuse_scaled},
    GemmImplementation{"torch._int_mm", Method::torch_int, true, refuse_int},
    GemmImplementation{"emulated", Method::emulated, false, accept},
};

}  // namespace

std::span<const GemmImplementation> gemm_implementations() { return kImplementations; }

Choice choose(const GemmProblem& problem, std::string_view forced) {
  std::string refused;
  for (const auto& implementation : kImplementations) {
    const bool named = forced == implementation.name;
    if (!forced.empty() && !named && implementation.method != Method::torch_fp32) {
      if (implementation.method != Method::emulated) continue;  // the last resort stays, with the reason
    }
    std::string why = implementation.refusal(problem, named);
    if (why.empty()) return {&implementation, std::move(refused)};
    if (implementation.method == Method::torch_fp32) continue;  // not a refusal worth a word
    refused += fmt::format("{}{}: {}", refused.empty() ? "" : "; ", implementation.name, why);
  }
  return {&kImplementations.back(), std::move(refused)};
}

}  // namespace hpqf::engine
