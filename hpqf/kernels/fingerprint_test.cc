#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "hpqf/kernels/fingerprint.h"
#include "hpqf/kernels/quantize.h"

namespace hpqf::kernels {
namespace {

std::vector<unsigned char> bytes(size_t n, uint32_t seed = 1) {
  std::mt19937 rng(seed);
  std::vector<unsigned char> out(n);
  for (auto& b : out) b = static_cast<unsigned char>(rng());
  return out;
}

TEST(Fingerprint, EveryImplementationAgreesOnEverySizeAndAlignment) {
  const auto data = bytes(3 * kFingerprintPiece + 1000);
  for (int64_t n :
       {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{4}, int64_t{127}, int64_t{128}, int64_t{129}, int64_t{1000},
        kFingerprintPiece - 1, kFingerprintPiece, kFingerprintPiece + 1, 3 * kFingerprintPiece + 5})
    for (size_t offset : {size_t{0}, size_t{1}, size_t{4}}) {
      const uint64_t want = implementations().back().fingerprint(data.data() + offset, n);
      for (const Implementation& i : implementations())
        EXPECT_EQ(i.runnable() ? i.fingerprint(data.data() + offset, n) : want, want) << i.name << " " << n;
    }
}

// Stored fingerprints must mean the same in later versions.
TEST(Fingerprint, ValueIsPinned) {
  std::vector<uint32_t> words(1000);
  for (uint32_t i = 0; i < words.size(); ++i) words[i] = i * 2654435761u;
  EXPECT_EQ(fingerprint(words.data(), 4000), 7659055431994390536u);
}

TEST(Fingerprint, AnyBitAnyLengthAnySwapShows) {
  auto data = bytes(2 * kFingerprintPiece + 40);
  const auto size = static_cast<int64_t>(data.size());
  std::set<uint64_t> seen{fingerprint(data.data(), size)};
  std::mt19937 rng(2);
  size_t expected = 1;
  for (int i = 0; i < 2000; ++i, ++expected) {
    const size_t at = rng() % data.size();
    const auto bit = static_cast<unsigned char>(1 << rng() % 8);
    data[at] ^= bit;
    seen.insert(fingerprint(data.data(), size));
    data[at] ^= bit;
  }
  EXPECT_GE(seen.size(), expected - 10);  // a bit drawn twice gives the same value: 2000^2 / (2 * 10^6) = 2 expected
  EXPECT_NE(fingerprint(data.data(), size), fingerprint(data.data(), size - 1));
  std::vector<unsigned char> zeros(600);
  EXPECT_NE(fingerprint(zeros.data(), 0), fingerprint(zeros.data(), 1));
  EXPECT_NE(fingerprint(zeros.data(), 512), fingerprint(zeros.data(), 513));
  auto swapped = data;  // two whole pieces change places
  std::swap_ranges(swapped.begin(), swapped.begin() + kFingerprintPiece, swapped.begin() + kFingerprintPiece);
  EXPECT_NE(fingerprint(swapped.data(), size), fingerprint(data.data(), size));
}

// What an optimizer or a user really does to a weight; sign flips touch only the top bit of each word.
TEST(Fingerprint, WholeTensorChangesShow) {
  std::vector<float> w(4096);
  std::mt19937 rng(3);
  for (float& v : w) v = static_cast<float>(static_cast<int32_t>(rng())) * 0x1p-31f;
  std::set<uint64_t> seen;
  const auto add = [&](auto change) {
    auto copy = w;
    for (float& v : copy) v = change(v);
    seen.insert(fingerprint(copy.data(), static_cast<int64_t>(copy.size() * sizeof(float))));
  };
  add([](float v) { return v; });
  add([](float v) { return -v; });
  add([](float v) { return 2 * v; });
  add([](float v) { return v + 1; });
  add([](float) { return 0.0f; });
  EXPECT_EQ(seen.size(), 5u);
}

}  // namespace
}  // namespace hpqf::kernels
