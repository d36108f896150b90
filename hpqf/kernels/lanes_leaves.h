// Included by one source file for each instruction set; that file's compiler flags decide what the loops become.
#pragma once
#include "hpqf/kernels/lanes_loops.h"
#include "hpqf/kernels/lanes_random.h"

namespace hpqf::kernels {
namespace {

template <int W, typename Multiply = PlainMultiply<W>>
constexpr Leaves make_leaves() {
  using L = Loops<W>;
  return {.largest_bits = &L::largest_bits,
          .largest_bits_columns = &L::largest_bits_columns,
          .block_scales = &L::block_scales,
          .round = &L::round,
          .round_scaled = &L::round_scaled,
          .round_columns = &L::round_columns,
          .codes = &L::codes,
          .codes_columns = &L::codes_columns,
          .random = &PhiloxLanes<W, Multiply>::fill,
          .scale_and_count = &L::scale_and_count,
          .fingerprint = &L::fingerprint};
}

}  // namespace
}  // namespace hpqf::kernels
