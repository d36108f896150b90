// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2,
// 3", SC 2011). A number is a pure function of (seed, stream, index), so the result does not depend on threads, ranks,
// order or resume.
#pragma once
#include <array>
#include <cstdint>

namespace hpqf::base {

using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxBlock = std::array<uint32_t, 4>;

// The block cipher itself: ten rounds, four words out.
constexpr PhiloxBlock philox4x32(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

constexpr PhiloxKey philox_key(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

// Four consecutive numbers of a stream: indices 4 * block .. 4 * block + 3.
constexpr PhiloxBlock random_block(uint64_t seed, uint64_t stream, uint64_t block) {
  return philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(stream),
                     static_cast<uint32_t>(stream >> 32)},
                    philox_key(seed));
}

// Uniform in [0, 2^32).
constexpr uint32_t random_bits(uint64_t seed, uint64_t stream, uint64_t index) {
  return random_block(seed, stream, index / 4)[index % 4];
}

// Uniform in [0, 1), a multiple of 2^-24.
constexpr float random_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  return static_cast<float>(random_bits(seed, stream, index) >> 8) * 0x1p-24f;
}

}  // namespace hpqf::base
