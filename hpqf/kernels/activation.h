// GELU and SiLU, forward and backward, fp32. One read and one write of each array; the cost is that of one exp and one
// division an element: 0.5 ns (SiLU) to 1 ns (gradient of the exact GELU) with AVX2 on a shared core, 0.2 to 0.7 of the
// time of torch 2.13 (bench/elementwise.py).
#pragma once
#include <cstdint>
#include <span>

#include "hpqf/base/export.h"

namespace hpqf::kernels {

enum class Activation {
  gelu,       // x Phi(x), with Phi the normal distribution function: (1 + erf(x / sqrt 2)) / 2
  gelu_tanh,  // x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  silu,       // x / (1 + exp(-x))
};

// y = f(x + bias). All arrays are contiguous [rows][cols], bias is [cols] or null. Nothing happens where a size is 0.
struct ActivationForward {
  Activation function = Activation::gelu;
  int64_t rows = 0, cols = 0;
  const float* x = nullptr;
  const float* bias = nullptr;
  float* y = nullptr;  // may be x
};

// dx = dy f'(x + bias)
struct ActivationBackward {
  Activation function = Activation::gelu;
  int64_t rows = 0, cols = 0;
  const float* x = nullptr;
  const float* bias = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;  // may be dy or x
};

// Run on the best implementation for this CPU, elements split by base::parallel_for (from 8192 on). An element's result
// depends on nothing but its operands.
//
// Largest error against fp64 in units of 2^-24 (half a unit in the last place of 1), measured over floats of all
// magnitudes, and the bound that the test asserts. f(x) relative: gelu 6.6, bound 8; silu 2.9, bound 3.5; gelu_tanh 2.6
// for positive x, bound 4 + 2.5 |2 u| for negative ones, where u is the argument of its tanh: the rounding of u. f'(x)
// absolute: 3.6, bound 4. torch 2.13 loses the negative tail of both GELUs: its relative error is 6e-5 and 1e-5 at -3,
// 0.05 and 0.3 at -5; here it is 3e-7 and 7e-7, 3e-7 and 2e-6.
//
// f(NaN) = NaN, f(+inf) = +inf, f(-inf) = 0; f'(+inf) = 1, f'(-inf) = 0 (torch gives NaN for some of these). Results of
// a magnitude below 2e-36 may come out as 0.
HPQF_API void activation(const ActivationForward& a);
HPQF_API void activation(const ActivationBackward& a);

// The implementations, best first. Each function takes elements [first, last).
struct ActivationImplementation {
  const char* name;    // "avx512", "avx2", "ref"
  bool (*runnable)();  // may run on this CPU
  void (*forward)(const ActivationForward&, int64_t first, int64_t last);
  void (*backward)(const ActivationBackward&, int64_t first, int64_t last);
};
HPQF_API std::span<const ActivationImplementation> activation_implementations();

}  // namespace hpqf::kernels
