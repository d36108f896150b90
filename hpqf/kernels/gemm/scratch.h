// Working memory that a thread keeps: grows to the largest request and is then reused, so that a training step
// allocates nothing.
#pragma once
#include <cstdint>

namespace hpqf::kernels {

enum class Scratch : uint8_t {
  packed_a,
  packed_b,
  strips,
  records,
  panels,
  output,
  gradient,
  planes,
  sums,
  sampled,
  count
};

// At least `bytes`, aligned to 64; on huge pages where the system offers them and the size is worth it. Valid until the
// same thread asks for the same slot again; the content is not kept.
char* scratch(Scratch slot, int64_t bytes);

}  // namespace hpqf::kernels
