// The kernels that see memory as one line.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/drive.h"
#include "hpqf/kernels/fingerprint.h"

namespace hpqf::kernels {
namespace {

constexpr int64_t kGrain = 32768;      // elements
constexpr int64_t kLongest = 1 << 20;  // elements a leaf may count in 32-bit lanes

uint64_t hash_piece(const Leaves& leaves, const unsigned char* data, int64_t size, int64_t piece) {
  constexpr int64_t kGroup = 4 * kFingerprintLanes;
  uint32_t lanes[kFingerprintLanes];
  std::fill(std::begin(lanes), std::end(lanes), kFingerprintStart);
  leaves.fingerprint(lanes, data, size / kGroup);
  if (const int64_t rest = size % kGroup) {
    unsigned char last[kGroup] = {};
    std::memcpy(last, data + size - rest, static_cast<size_t>(rest));
    leaves.fingerprint(lanes, last, 1);
  }
  return fingerprint_piece(lanes, piece);
}

}  // namespace

int64_t drive_scale_and_count(const Leaves& leaves, float* data, int64_t n, float factor) {
  struct Pass {
    const Leaves& leaves;
    float* data;
    float factor;
    std::atomic<int64_t> count{0};
  } pass{leaves, data, factor};
  base::parallel_for(0, n, kGrain, [&pass](int64_t begin, int64_t end) {
    int64_t count = 0;
    for (int64_t i = begin; i < end; i += kLongest)
      count += pass.leaves.scale_and_count(pass.data + i, std::min(kLongest, end - i), pass.factor);
    pass.count += count;
  });
  return pass.count;
}

uint64_t drive_fingerprint(const Leaves& leaves, const void* data, int64_t bytes) {
  struct Pass {
    const Leaves& leaves;
    const unsigned char* data;
    int64_t bytes;
    std::atomic<uint64_t> sum{0};
  } pass{leaves, static_cast<const unsigned char*>(data), bytes};
  base::parallel_for(0, (bytes + kFingerprintPiece - 1) / kFingerprintPiece, 4, [&pass](int64_t begin, int64_t end) {
    uint64_t sum = 0;
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t first = piece * kFingerprintPiece;
      sum += hash_piece(pass.leaves, pass.data + first, std::min(kFingerprintPiece, pass.bytes - first), piece);
    }
    pass.sum += sum;
  });
  return fingerprint_finish(pass.sum, bytes);
}

}  // namespace hpqf::kernels
