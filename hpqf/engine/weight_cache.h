// Compute copies of weights, made once per content and reused while neither the version nor the content moved.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include "hpqf/formats/block_format.h"

namespace hpqf::engine {

// What a copy is for; copies of one weight for different uses live side by side.
enum class CopyUse : uint8_t {
  rounded,       // fp32 values on the grid of the format
  packed,        // operand B of an integer GEMM, for the forward pass
  packed_dgrad,  // ... for the input gradient, which contracts over the other axis
};

// The copy of `w` that `make` produced for the same bytes, else a new one. Writes through `.data` change no version, so
// the content's fingerprint is compared too. `w` must be cacheable().
// `exponent`: where the range of the format lies (range.h).
at::Tensor weight_copy(const at::Tensor& w, CopyUse use, const BlockFormat& format, int64_t axis,
                       c10::function_ref<at::Tensor()> make, int exponent = 0);
bool cacheable(const at::Tensor& w);  // dense fp32 CPU memory with a version counter

}  // namespace hpqf::engine
