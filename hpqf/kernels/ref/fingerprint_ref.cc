#include <algorithm>
#include <cstring>

#include "hpqf/kernels/fingerprint.h"
#include "hpqf/kernels/ref/ref.h"

namespace hpqf::kernels::ref {

uint64_t fingerprint(const void* data, int64_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t sum = 0;
  for (int64_t first = 0; first < bytes; first += kFingerprintPiece) {
    const int64_t size = std::min(kFingerprintPiece, bytes - first);
    const int64_t group = 4 * kFingerprintLanes;
    uint32_t lanes[kFingerprintLanes];
    for (uint32_t& h : lanes) h = kFingerprintStart;
    for (int64_t at = 0; at < (size + group - 1) / group * group; at += 4) {
      uint32_t word = 0;
      if (at < size) std::memcpy(&word, p + first + at, static_cast<size_t>(std::min<int64_t>(4, size - at)));
      uint32_t& h = lanes[at / 4 % kFingerprintLanes];
      h = (h ^ word) * kFingerprintPrime;
      h ^= h >> 15;
    }
    sum += fingerprint_piece(lanes, first / kFingerprintPiece);
  }
  return fingerprint_finish(sum, bytes);
}

}  // namespace hpqf::kernels::ref
