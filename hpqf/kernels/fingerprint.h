// The arithmetic that every implementation of fingerprint() shares.
//
// Memory is cut into pieces of 64 KiB. In a piece, 32-bit word i goes to lane i % 32 (the last group padded with
// zeros), and each lane folds its words one after another: h = (h ^ word) * prime; h ^= h >> 15. Every step can be
// undone, so a change in one word always changes its lane. The lanes and then the pieces are mixed with their position
// and added, which is free of order: pieces may be hashed by any thread. 32 lanes keep four 256-bit chains busy, enough
// to hide the multiplier.
#pragma once
#include <cstdint>

namespace hpqf::kernels {

inline constexpr int kFingerprintLanes = 32;
inline constexpr int64_t kFingerprintPiece = 65536;         // bytes
inline constexpr uint32_t kFingerprintPrime = 0x9E3779B1u;  // odd, near 2^32 / golden ratio
inline constexpr uint32_t kFingerprintStart = 0x85EBCA77u;

// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): one to one, every input bit reaches every output bit.
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

constexpr uint64_t fingerprint_piece(const uint32_t (&lanes)[kFingerprintLanes], int64_t piece) {
  uint64_t sum = 0;
  for (uint32_t lane = 0; lane < kFingerprintLanes; ++lane) sum += mix64(uint64_t{lane + 1} << 32 | lanes[lane]);
  return mix64(sum ^ mix64(static_cast<uint64_t>(piece) + 0x9E3779B97F4A7C15u));
}

constexpr uint64_t fingerprint_finish(uint64_t sum_of_pieces, int64_t bytes) {
  return mix64(sum_of_pieces ^ mix64(static_cast<uint64_t>(bytes)));
}

}  // namespace hpqf::kernels
