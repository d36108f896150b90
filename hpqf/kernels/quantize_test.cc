// Every implementation that runs on this CPU, and the inner loops at 512 bits cut down to this CPU's vectors, against
// `ref`.
#include "hpqf/kernels/quantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "hpqf/base/error.h"
#include "hpqf/base/parallel.h"
#include "hpqf/base/random.h"
#include "hpqf/kernels/drive.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // 512-bit vectors passed in memory: only between functions of this file
#include "hpqf/kernels/lanes_leaves.h"

namespace hpqf::kernels {
namespace {

using formats::BlockShape;
using formats::ScaleType;

const Implementation& reference() { return implementations().back(); }

// What avx512 compiles from the same text, so that its logic is tested on CPUs without it.
const Leaves& wide() {
  static constexpr Leaves kLeaves = make_leaves<16>();
  return kLeaves;
}
const Implementation kWide{
    "512-bit loops",
    "any CPU",
    [] { return true; },
    [](const float* in, float* out, BlockLayout l, const BlockFormat& f, const RoundOptions& o) {
      return drive_round(wide(), in, out, l, f, o);
    },
    [](const float* in, int8_t* codes, float* scales, BlockLayout l, const BlockFormat& f) {
      return drive_int8(wide(), in, codes, scales, l, f);
    },
    [](float* data, int64_t n, float factor) { return drive_scale_and_count(wide(), data, n, factor); },
    [](const void* data, int64_t bytes) { return drive_fingerprint(wide(), data, bytes); }};

std::vector<const Implementation*> under_test() {
  std::vector<const Implementation*> out{&kWide};
  for (const Implementation& i : implementations())
    if (&i != &reference()) out.push_back(&i);
  return out;
}

TEST(Implementations, ListEndsWithTheReferenceThatRunsAnywhere) {
  EXPECT_STREQ(reference().name, "ref");
  EXPECT_TRUE(reference().runnable());
  EXPECT_GE(implementations().size(), 2u);
}

// --- inputs ---
enum class Data { ordinary, any_bits, tiny, huge, zeros, one_nan, one_infinity };
constexpr Data kAllData[] = {Data::ordinary, Data::any_bits, Data::tiny,        Data::huge,
                             Data::zeros,    Data::one_nan,  Data::one_infinity};

std::vector<float> make(Data kind, int64_t n, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-30, 20);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) {
    switch (kind) {
      case Data::any_bits:
        v = std::bit_cast<float>(static_cast<uint32_t>(rng()));
        break;
      case Data::tiny:
        v = normal(rng) * 0x1p-140f;
        break;
      case Data::huge:
        v = std::copysign(std::numeric_limits<float>::max() * (1 - 0.01f * std::fabs(normal(rng))), normal(rng));
        break;
      case Data::zeros:
        v = rng() & 1 ? 0.0f : -0.0f;
        break;
      default:
        v = normal(rng) * std::exp2(exponent(rng));
    }
  }
  if (n > 0 && kind == Data::one_nan) x[rng() % x.size()] = std::bit_cast<float>(0xffc12345u);
  if (n > 0 && kind == Data::one_infinity) x[rng() % x.size()] = -std::numeric_limits<float>::infinity();
  return x;
}

std::vector<BlockFormat> all_block_formats() {
  std::vector<BlockFormat> out;
  for (const auto& f : formats::all_formats()) {
    if (!f.is_integer) out.push_back({f.format, BlockShape::none, 0, ScaleType::none});
    if (f.exponent_bits == 8) continue;
    for (ScaleType scale : {ScaleType::fp32, ScaleType::pow2}) {
      out.push_back({f.format, BlockShape::tensor, 0, scale});
      out.push_back({f.format, BlockShape::row, 0, scale});
      for (int n : {5, 64}) out.push_back({f.format, BlockShape::vector, n, scale});
    }
  }
  return out;
}

constexpr BlockLayout kLayouts[] = {{1, 0, 1},   {0, 4, 4},    {1, 1, 1},    {1, 3, 1},   {1, 64, 1},  {2, 257, 1},
                                    {7, 130, 1}, {2, 5, 3},    {3, 64, 15},  {2, 66, 16}, {2, 65, 49}, {1, 70, 257},
                                    {1, 9, 600}, {1, 5000, 1}, {1, 4500, 2}, {9, 1000, 1}};

// Output between guards: nothing before or after may change.
template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t n) : n_(static_cast<size_t>(n)), bytes_((n_ + 2 * kGuard) * sizeof(T), std::byte{0xA5}) {}
  T* data() { return reinterpret_cast<T*>(bytes_.data()) + kGuard; }
  bool intact() const {
    for (size_t i = 0; i < kGuard * sizeof(T); ++i)
      if (bytes_[i] != std::byte{0xA5} || bytes_[bytes_.size() - 1 - i] != std::byte{0xA5}) return false;
    return true;
  }

 private:
  static constexpr size_t kGuard = 64;
  size_t n_;
  std::vector<std::byte> bytes_;
};

template <typename T>
bool same(const T* a, const T* b, int64_t n) {
  return n == 0 || std::memcmp(a, b, static_cast<size_t>(n) * sizeof(T)) == 0;
}

std::string describe(const Implementation& i, const BlockFormat& f, const BlockLayout& l, Data data) {
  return std::string(i.name) + " " + formats::to_string(f) + " " + std::to_string(l.outer) + "x" +
         std::to_string(l.axis) + "x" + std::to_string(l.inner) + " data " + std::to_string(int(data));
}

void expect_round(const Implementation& i, const std::vector<float>& x, const BlockLayout& l, const BlockFormat& f,
                  const RoundOptions& options, Data data) {
  const int64_t n = l.numel();
  std::vector<float> want(x.size()), inplace(x);
  const RoundStats stats = reference().round(x.data(), want.data(), l, f, options);
  Guarded<float> out(n);
  const RoundStats got = i.round(x.data(), out.data(), l, f, options);
  i.round(inplace.data(), inplace.data(), l, f, options);
  EXPECT_TRUE(same(out.data(), want.data(), n)) << describe(i, f, l, data);
  EXPECT_TRUE(same<float>(inplace.data(), want.data(), n)) << "in place: " << describe(i, f, l, data);
  EXPECT_TRUE(out.intact()) << describe(i, f, l, data);
  EXPECT_EQ(got.nonfinite_in, stats.nonfinite_in) << describe(i, f, l, data);
  EXPECT_EQ(got.overflow, stats.overflow) << describe(i, f, l, data);
  EXPECT_EQ(got.amax, stats.amax) << describe(i, f, l, data);
}

// --- tests ---
class EveryImplementation : public ::testing::TestWithParam<const Implementation*> {
 protected:
  void SetUp() override {
    if (!impl.runnable()) GTEST_SKIP() << impl.name << " cannot run on this CPU: needs " << impl.needs;
  }
  const Implementation& impl = *GetParam();
};

TEST_P(EveryImplementation, RoundsAsTheReference) {
  uint32_t seed = 1;
  for (const BlockFormat& f : all_block_formats())
    for (const BlockLayout& l : kLayouts)
      for (Data data : kAllData) {
        if (l.numel() > 3000 && data != Data::ordinary && data != Data::any_bits) continue;
        const auto x = make(data, l.numel(), ++seed);
        expect_round(impl, x, l, f, {}, data);
        if (l.numel() < 3000 || data == Data::ordinary)
          expect_round(impl, x, l, f, {Rounding::stochastic, 99, seed}, data);
        if (HasFailure()) return;
      }
}

TEST_P(EveryImplementation, MovesTheRangeOfUnscaledFormatsAndMeasuresTheLargestMagnitude) {
  uint32_t seed = 1;
  for (const Format format : {Format::fp16, Format::fp8_e4m3, Format::fp8_e5m2})
    for (const int exponent : {-80, -31, -3, 0, 1, 17, 80})
      for (const BlockLayout& l : kLayouts)
        for (const Data data : kAllData) {
          if (l.numel() > 3000 && data != Data::one_infinity) continue;
          const auto x = make(data, l.numel(), ++seed);
          const BlockFormat f{format, BlockShape::none, 0, ScaleType::none};
          expect_round(impl, x, l, f, {.exponent = exponent, .amax = true}, data);
          expect_round(impl, x, l, f, {Rounding::stochastic, 99, seed, exponent, true}, data);
          if (HasFailure()) return;
        }
}

TEST_P(EveryImplementation, RoundsEveryUpperHalfOfAPattern) {
  std::vector<float> x;
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (uint32_t low : {0x0000u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      x.push_back(std::bit_cast<float>(high << 16 | low));
  const BlockLayout l{1, static_cast<int64_t>(x.size()), 1};
  for (const auto& row : formats::all_formats()) {
    if (row.is_integer) continue;
    expect_round(impl, x, l, {row.format, BlockShape::none, 0, ScaleType::none}, {}, Data::any_bits);
    expect_round(impl, x, l, {row.format, BlockShape::none, 0, ScaleType::none}, {Rounding::stochastic, 5, 6},
                 Data::any_bits);
  }
}

TEST_P(EveryImplementation, CodesAsTheReferenceAndTimesScaleTheRoundedTensor) {
  uint32_t seed = 1000;
  for (const BlockFormat& f : all_block_formats()) {
    if (!formats::info(f.format).is_integer || formats::info(f.format).bits > 8) continue;
    for (const BlockLayout& l : kLayouts)
      for (Data data : kAllData) {
        const auto x = make(data, l.numel(), ++seed);
        const int64_t n = l.numel(), scales = scale_count(l, f);
        std::vector<int8_t> want(x.size());
        std::vector<float> want_scales(static_cast<size_t>(scales)), rounded(x.size());
        const RoundStats stats = reference().quantize_int8(x.data(), want.data(), want_scales.data(), l, f);
        reference().round(x.data(), rounded.data(), l, f, {});
        Guarded<int8_t> codes(n);
        Guarded<float> got_scales(scales);
        const RoundStats got = impl.quantize_int8(x.data(), codes.data(), got_scales.data(), l, f);
        ASSERT_TRUE(same<int8_t>(codes.data(), want.data(), n)) << describe(impl, f, l, data);
        ASSERT_TRUE(same<float>(got_scales.data(), want_scales.data(), scales)) << describe(impl, f, l, data);
        ASSERT_TRUE(codes.intact() && got_scales.intact()) << describe(impl, f, l, data);
        ASSERT_EQ(got.nonfinite_in, stats.nonfinite_in);
        ASSERT_EQ(got.overflow, stats.overflow);
        const int64_t size = f.shape == BlockShape::vector ? f.block : l.axis;
        for (int64_t i = 0; i < n; ++i) {
          const int64_t o = i / (l.axis * l.inner), a = i / l.inner % l.axis, in = i % l.inner;
          const int64_t block =
              f.shape == BlockShape::tensor ? 0 : (o * ((l.axis + size - 1) / size) + a / size) * l.inner + in;
          const float value = static_cast<float>(codes.data()[i]) * got_scales.data()[block];
          ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(rounded[static_cast<size_t>(i)])) << i;
        }
      }
  }
}

TEST_P(EveryImplementation, ScalesAndCountsAsTheReference) {
  for (int64_t n : {0, 1, 3, 4, 7, 8, 15, 16, 17, 33, 1000, 70001})
    for (Data data : kAllData)
      for (float factor : {1.0f, 0x1p-10f, 3.0f, 0x1p60f, 0.0f, std::numeric_limits<float>::infinity()}) {
        auto want = make(data, n, 3);
        Guarded<float> got(n);
        if (n) std::memcpy(got.data(), want.data(), want.size() * sizeof(float));
        EXPECT_EQ(impl.scale_and_count(got.data(), n, factor), reference().scale_and_count(want.data(), n, factor));
        EXPECT_TRUE(same<float>(got.data(), want.data(), n)) << n << " * " << factor;
        EXPECT_TRUE(got.intact());
      }
}

int64_t g_pieces = 0;
// Pieces of uneven size, last first: results may not depend on how the work is cut.
void uneven(int64_t begin, int64_t end, int64_t grain, const base::RangeBody& body) {
  const int64_t cut = begin + grain + (end - begin - grain) / 3;
  for (int64_t b : {cut, begin}) {
    ++g_pieces;
    body(b, b == cut ? end : cut);
  }
}

TEST_P(EveryImplementation, DoesNotDependOnTheCut) {
  for (const char* text : {"bf16", "fp16", "fp8_e4m3", "int8", "int8[row]", "int8[tensor]"})
    for (const BlockLayout& l : {BlockLayout{150, 401, 1}, BlockLayout{3, 200, 101}}) {
      const auto x = make(Data::any_bits, l.numel(), 4);
      base::set_parallel_backend(&uneven);
      g_pieces = 0;
      expect_round(impl, x, l, formats::parse_block_format(text), {Rounding::stochastic, 1, 2}, Data::any_bits);
      EXPECT_GT(g_pieces, 0) << text;
      base::set_parallel_backend(nullptr);
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryImplementation, ::testing::ValuesIn(under_test()), [](const auto& test) {
  std::string name = test.param->name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

// Block numbers carry into their upper word inside a group of lanes.
TEST(Random, LanesAreTheCountersOfTheDefinition) {
  for (uint64_t first : {uint64_t{0}, (uint64_t{1} << 32) - 5, ~uint64_t{0} - 40}) {
    uint32_t words[4 * 48];
    wide().random(words, 0x123456789abcdefu, 0xfedcba987654321u, first, 40);
    for (uint64_t i = 0; i < 160; ++i)
      ASSERT_EQ(words[i], base::random_block(0x123456789abcdefu, 0xfedcba987654321u, first + i / 4)[i % 4]) << i;
  }
}

// The one number at which the loops must start to round away, found in the definition by bisection: chance would never
// hit it.
TEST(Random, LoopsRoundAwayFromTheSameNumberOnAsTheDefinition) {
  std::mt19937 rng(5);
  for (const auto& f : formats::all_formats()) {
    if (f.format == Format::fp32) continue;
    std::uniform_real_distribution<float> exponent(std::log2(f.smallest) + 1, std::log2(f.largest) - 1);
    for (int i = 0; i < 300; ++i) {
      const float x = std::exp2(exponent(rng)) * 1.2345f;
      const auto rounded = [&](uint32_t r) { return formats::round_to(f.format, x, Rounding::stochastic, r); };
      uint32_t keeps = 0, rounds = 0xffffffffu;
      if (rounded(keeps) == rounded(rounds)) continue;  // x has a code
      while (rounds - keeps > 1) {
        const uint32_t middle = keeps + (rounds - keeps) / 2;
        (rounded(middle) == rounded(0) ? keeps : rounds) = middle;
      }
      const float in[2] = {x, -x};
      float out[2];
      for (uint32_t r : {keeps, rounds}) {
        const uint32_t numbers[2] = {r, r};
        wide().round(round_params(f.format), in, out, 2, numbers);
        ASSERT_EQ(out[0], rounded(r)) << f.name << " " << x << " " << r;
        ASSERT_EQ(out[1], -rounded(r));
      }
    }
  }
}

TEST(Quantize, PublicFunctionsRefuseWhatTheyCannotDo) {
  float x[4] = {};
  float scale[4];
  int8_t codes[4];
  const BlockFormat int8 = formats::default_block(Format::int8);
  EXPECT_THROW(quantize_dequantize(x, x, {1, -1, 1}, int8), Error);
  EXPECT_THROW(quantize_dequantize(x, x, {1, 4, 1}, {Format::int8, BlockShape::vector, 0, ScaleType::fp32}), Error);
  EXPECT_THROW(quantize_dequantize(x, x, {1, 4, 1}, {Format::bf16, BlockShape::row, 0, ScaleType::fp32}), Error);
  EXPECT_THROW(quantize_dequantize(x, x, {1, 4, 1}, int8, {.exponent = 1}), Error);
  EXPECT_THROW(quantize_dequantize(x, x, {1, 4, 1}, formats::default_block(Format::bf16), {.exponent = 1}), Error);
  EXPECT_THROW(quantize_dequantize(x, x, {1, 4, 1}, formats::default_block(Format::fp16), {.exponent = 81}), Error);
  EXPECT_THROW(quantize_int8(x, codes, scale, {1, 4, 1}, formats::default_block(Format::int12)), Error);
  EXPECT_THROW(quantize_int8(x, codes, scale, {1, 4, 1}, formats::default_block(Format::fp8_e4m3)), Error);
  EXPECT_EQ(quantize_dequantize(nullptr, nullptr, {5, 0, 3}, int8).overflow, 0);
}

TEST(Quantize, ARangeMovedByTwoToTheEIsTheFormatOfTheScaledNumber) {
  const float x[] = {300000.0f, 70000.0f, -1.0f, 0x1p-20f, 0.0f};
  float y[5];
  const BlockFormat fp16 = formats::default_block(Format::fp16);
  EXPECT_EQ(quantize_dequantize(x, y, {1, 5, 1}, fp16).overflow, 2);
  const RoundStats moved = quantize_dequantize(x, y, {1, 5, 1}, fp16, {.exponent = -4, .amax = true});
  EXPECT_EQ(moved.overflow, 0);
  EXPECT_EQ(moved.amax, 300000.0f);
  EXPECT_EQ(y[0], 300032.0f);  // 11 bits of 300000: a multiple of 256 below 2^19
  EXPECT_EQ(y[2], -1.0f);
  EXPECT_EQ(y[3], 0x1p-20f);  // the smallest: 2^-24 * 2^4
  EXPECT_EQ(y[4], 0.0f);
}

TEST(Quantize, BlockedErrorIsWithinHalfAStepOfItsScale) {
  const BlockLayout l{3, 100, 7};
  const auto x = make(Data::ordinary, l.numel(), 8);
  std::vector<float> y(x.size());
  std::vector<int8_t> codes(x.size());
  const BlockFormat f = formats::default_block(Format::int8);
  std::vector<float> scales(static_cast<size_t>(scale_count(l, f)));
  quantize_dequantize(x.data(), y.data(), l, f);
  quantize_int8(x.data(), codes.data(), scales.data(), l, f);
  EXPECT_EQ(scales.size(), 3u * 2 * 7);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t block = (i / 700 * 2 + i / 7 % 100 / 64) * 7 + i % 7;
    EXPECT_LE(std::fabs(x[i] - y[i]), 0.5f * scales[block] * 1.00001f);
  }
}

TEST(Quantize, StochasticRoundingIsUnbiased) {
  const int64_t n = 40000;
  std::vector<float> x(static_cast<size_t>(n), 1.0f + 0.3f * 0x1p-7f), y(x.size());  // 0.3 of a bf16 step
  quantize_dequantize(x.data(), y.data(), {1, n, 1}, formats::default_block(Format::bf16),
                      {Rounding::stochastic, 1, 2});
  double up = 0;
  for (float v : y) up += v > 1.0f;
  EXPECT_NEAR(up / double(n), 0.3, 5 * std::sqrt(0.3 * 0.7 / double(n)));  // five standard errors
}

}  // namespace
}  // namespace hpqf::kernels
