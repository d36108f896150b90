#include "hpqf/engine/implementation.h"

#include <fmt/format.h>

#include <array>

#include "hpqf/engine/gemm.h"
#include "hpqf/engine/integer_gemm.h"
#include "hpqf/engine/native_speed.h"

namespace hpqf::engine {
namespace {

Answer yes() { return {Answer::yes, ""}; }
Answer no(std::string reason) { return {Answer::no, std::move(reason)}; }
Answer other_formats() { return {Answer::other_formats, ""}; }
Answer yes_unless(std::string reason) { return reason.empty() ? yes() : no(std::move(reason)); }

bool is_fp8(const BlockFormat& f) { return f.format == Format::fp8_e4m3 || f.format == Format::fp8_e5m2; }

Answer accept_fp32(const GemmProblem& p, bool) {
  return is_fp32(p.a) && is_fp32(p.b) && is_fp32(p.dgrad) && is_fp32(p.wgrad) ? yes() : other_formats();
}

Answer accept_cast(const GemmProblem& p, bool forced) {
  const Format f = p.a.format;
  if (f != Format::bf16 && f != Format::fp16) return other_formats();
  if (p.b.format != f) return no("both operands must have one format");
  if (p.needs_grad && (p.dgrad.format != f || p.wgrad.format != f))
    return no("the backward GEMMs ask for another format");
  if (forced || p.device != c10::DeviceType::CPU) return yes();
  return yes_unless(cpu_slow_reason(f));
}

// torch._scaled_mm: fp8 with one scale a tensor.
Answer accept_scaled(const GemmProblem& p, bool forced) {
  if (p.a.format != Format::fp8_e4m3 || p.b.format != Format::fp8_e4m3) return other_formats();
  if (p.a.shape != formats::BlockShape::tensor || p.b.shape != formats::BlockShape::tensor)
    return no("one scale a tensor only");
  if (!p.is_linear || !p.b_is_weight) return no("linear layers only");
  if (p.needs_grad && (p.dgrad != p.wgrad || !is_fp8(p.dgrad))) return no("both gradients must be fp8 too");
  if (p.m % 16 || p.n % 16 || p.k % 16) return no(fmt::format("sizes {}x{}x{} are not multiples of 16", p.m, p.n, p.k));
  if (forced || p.device != c10::DeviceType::CPU) return yes();
  return no("torch's fp8 GEMM on CPUs without AMX-FP16 converts to fp32 inside");
}

Answer accept_int(const GemmProblem& p, bool forced) {
  if (p.a.format != Format::int8 || p.b.format != Format::int8) return other_formats();
  if (p.a.shape == formats::BlockShape::vector || p.b.shape == formats::BlockShape::vector)
    return no("no scales inside the contraction: ask for int8[row] or int8[tensor]");
  if (!p.is_linear || !p.b_is_weight) return no("linear layers only");
  if (p.n % 8 || p.k % 8 || (p.device != c10::DeviceType::CPU && p.m <= 16))
    return no(fmt::format("sizes {}x{}x{}: rows > 16 on accelerators, the others multiples of 8", p.m, p.n, p.k));
  if (forced || p.device != c10::DeviceType::CPU) return yes();
  return no("measured at a thirtieth of fp32's rate on AVX2, no faster than fp32 on AVX-512");
}

Answer accept_integer(const GemmProblem& p, bool) {
  const Format f = p.a.format;
  if (f != Format::int8 && f != Format::int12) return other_formats();
  return yes_unless(integer_refusal(p));
}

Answer accept_any(const GemmProblem&, bool) { return yes(); }

constexpr std::array kImplementations = {
    GemmImplementation{"torch", Method::torch_fp32, true, accept_fp32},
    GemmImplementation{"torch.cast", Method::torch_cast, true, accept_cast},
    GemmImplementation{"hpqf.integer", Method::integer, true, accept_integer},
    GemmImplementation{"torch._scaled_mm", Method::torch_scaled, true, accept_scaled},
    GemmImplementation{"torch._int_mm", Method::torch_int, true, accept_int},
    GemmImplementation{"emulated", Method::emulated, false, accept_any},
};

}  // namespace

std::span<const GemmImplementation> gemm_implementations() { return kImplementations; }

Choice choose(const GemmProblem& problem, std::string_view forced) {
  std::string refused;
  for (const auto& implementation : kImplementations) {
    const bool named = forced == implementation.name;
    // A forced name leaves only that one, fp32 for layers planned so, and emulation as the last resort (with the
    // reason).
    const bool candidate = forced.empty() || named || implementation.method == Method::torch_fp32 ||
                           implementation.method == Method::emulated;
    if (!candidate) continue;
    Answer answer = implementation.accepts(problem, named);
    if (answer.is == Answer::yes) return {&implementation, std::move(refused)};
    if (answer.is == Answer::no)
      refused += fmt::format("{}{}: {}", refused.empty() ? "" : "; ", implementation.name, answer.reason);
  }
  return {&kImplementations.back(), std::move(refused)};
}

}  // namespace hpqf::engine
