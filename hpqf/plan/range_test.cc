#include "hpqf/plan/range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hpqf/base/error.h"

namespace hpqf::plan {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = std::numeric_limits<float>::denorm_min(), kMax = std::numeric_limits<float>::max();

// Casts a recorded sequence of absolute maxima.
struct Recorded {
  RangeTrack track;
  std::vector<RangeCast> casts;
  Recorded(const std::vector<float>& maxima, Format format, const RangeOptions& options = {}) {
    for (float amax : maxima) {
      casts.push_back(range_cast(track, format, amax, options));
      track = casts.back().track;
    }
  }
};

TEST(Range, TheExponentIsTheLargestThatKeepsTheMargin) {
  // By definition: amax * 2^(e + margin) <= largest < amax * 2^(e + margin + 1).
  for (Format format : {Format::fp16, Format::fp8_e4m3, Format::fp8_e5m2, Format::bf16})
    for (float amax : {1.0f, 448.0f, 449.0f, 65504.0f, 65505.0f, 0.999f, 3.1e-5f, 1e30f, 1e-30f})
      for (int margin : {0, 2, 3}) {
        const int e = range_exponent(format, amax, margin);
        if (std::abs(e) == 120) continue;  // clamped; below
        const double largest = formats::info(format).largest, scaled = std::ldexp(double{amax}, e + margin);
        EXPECT_LE(scaled, largest) << formats::name(format) << ' ' << amax;
        EXPECT_GT(scaled * 2, largest) << formats::name(format) << ' ' << amax;
      }
}

TEST(Range, ExtremeMaxima) {
  EXPECT_EQ(range_exponent(Format::fp16, 0.0f, 2), 0);
  EXPECT_EQ(range_exponent(Format::fp16, kInf, 2), 0);
  EXPECT_EQ(range_exponent(Format::fp16, kNan, 2), 0);
  EXPECT_EQ(range_exponent(Format::fp16, kTiny, 2), 120) << "2^162 would be no fp32 number";
  EXPECT_EQ(range_exponent(Format::fp8_e4m3, kMax, 2), -122 + 2) << "clamped from -122";
  EXPECT_EQ(range_exponent(Format::fp8_e4m3, kMax, 0), -120);
  EXPECT_EQ(range_exponent(Format::fp16, 65504.0f, 0), 0);
  EXPECT_EQ(range_exponent(Format::fp16, std::nextafter(65504.0f, kInf), 0), -1);
  EXPECT_THROW(range_exponent(Format::int8, 1.0f, 2), Error);
}

TEST(Range, TheFirstTensorUsesItsOwnMaximum) {
  const Recorded run({3e5f}, Format::fp16);
  EXPECT_EQ(run.casts[0].exponent, -5);  // 65504 / 3e5 is in [2^-3, 2^-2)
  EXPECT_FALSE(run.casts[0].recast);
  EXPECT_EQ(run.track.exponent, -5);
  EXPECT_EQ(run.track.clipped, 0);
}

TEST(Range, AJumpBy64RecoversWithinOneStep) {
  std::vector<float> maxima(20, 1000.0f);
  maxima.insert(maxima.end(), 20, 64000.0f);
  const Recorded recast(maxima, Format::fp16);
  EXPECT_TRUE(recast.casts[20].recast) << "in the step itself";
  EXPECT_FALSE(clips(Format::fp16, 64000.0f, recast.casts[20].exponent));
  EXPECT_EQ(recast.track.recasts, 1);
  const Recorded skip(maxima, Format::fp16, {.recast = false});
  EXPECT_TRUE(skip.casts[20].clipped) << "this step is skipped; its maximum is recorded all the same";
  for (size_t i = 21; i < 40; ++i) EXPECT_FALSE(skip.casts[i].clipped) << i;
  EXPECT_EQ(skip.track.clipped, 1);
  EXPECT_EQ(skip.track.recasts, 0);
}

TEST(Range, TheMarginAbsorbsGrowth) {
  std::vector<float> growing;  // 4x a step
  for (float x = 1e-3f; x < 1e12f; x *= 4) growing.push_back(x);
  EXPECT_EQ(Recorded(growing, Format::fp8_e4m3, {.margin = 2, .recast = false}).track.clipped, 0);
  EXPECT_GT(Recorded(growing, Format::fp8_e4m3, {.margin = 0, .recast = false}).track.clipped, 20);
}

TEST(Range, OldMaximaAreForgottenAfterTheWindow) {
  std::vector<float> maxima{4096.0f};
  maxima.insert(maxima.end(), 15, 1.0f);
  const int high = range_exponent(Format::fp16, 4096.0f, 2), low = range_exponent(Format::fp16, 1.0f, 2);
  Recorded run(maxima, Format::fp16);
  EXPECT_EQ(run.track.exponent, high);
  run.track = range_cast(run.track, Format::fp16, 1.0f).track;
  EXPECT_EQ(run.track.exponent, low);
  EXPECT_EQ(run.track.window.size(), 16u);
}

TEST(Range, ZerosSayNothing) {
  const Recorded only({0, 0, 0}, Format::fp16);
  EXPECT_EQ(only.track.exponent, 0);
  std::vector<float> maxima{1e-3f};
  maxima.insert(maxima.end(), 40, 0.0f);
  const Recorded after(maxima, Format::fp16);
  EXPECT_EQ(after.track.exponent, range_exponent(Format::fp16, 1e-3f, 2));
  EXPECT_EQ(after.track.clipped, 0);
}

TEST(Range, NonFiniteMaximaNeverEnterTheWindow) {
  const Recorded run({1.0f, kNan, kInf, -kInf, 2.0f}, Format::fp16);
  EXPECT_EQ(run.track.window, (std::vector<float>{1.0f, 2.0f}));
  EXPECT_EQ(run.track.nonfinite, 3);
  EXPECT_EQ(run.track.casts, 5);
  EXPECT_EQ(run.track.exponent, range_exponent(Format::fp16, 2.0f, 2));
  EXPECT_EQ(Recorded({kNan, 3.0f}, Format::fp16).casts[1].exponent, range_exponent(Format::fp16, 3.0f, 2))
      << "the first finite tensor is the first";
}

TEST(Range, SubnormalAndExtremeSequences) {
  const Recorded run({kTiny, kMax, kTiny, 1e-42f, 1.0f}, Format::fp8_e4m3);
  for (const RangeCast& cast : run.casts) {
    EXPECT_LE(std::abs(cast.exponent), 120);
    EXPECT_TRUE(std::isnormal(std::ldexp(1.0f, cast.exponent)) && std::isnormal(std::ldexp(1.0f, -cast.exponent)));
  }
  EXPECT_TRUE(run.casts[1].recast);
  EXPECT_FALSE(clips(Format::fp8_e4m3, kMax, -120));
}

TEST(Range, SwitchedOffOnlyWatches) {
  const Recorded run({1.0f, 1e6f}, Format::fp16, {.enabled = false});
  EXPECT_EQ(run.casts[1].exponent, 0);
  EXPECT_TRUE(run.casts[1].clipped);
  EXPECT_EQ(run.track.exponent, 0);
  EXPECT_EQ(run.track.window.size(), 2u);
}

TEST(Range, StateSurvivesItsJsonExactly) {
  RangeState state;
  state.tracks[{"a \"q\"", Operand::input}] = Recorded({kTiny, 0.1f, 1e-42f, kMax, kNan}, Format::fp16).track;
  state.tracks[{"", Operand::dgrad}] = Recorded({1.0f / 3}, Format::fp8_e5m2).track;
  state.tracks[{"b", Operand::wgrad}] = {};
  const RangeState read = range_state_from_json(to_json(state));
  EXPECT_EQ(read, state);
  // And goes on the same.
  const RangeTrack &a = state.tracks.begin()->second, &b = read.tracks.begin()->second;
  EXPECT_EQ(range_cast(a, Format::fp16, 5.0f).track, range_cast(b, Format::fp16, 5.0f).track);
  EXPECT_THROW(range_state_from_json("{}"), Error);
  EXPECT_THROW(range_state_from_json(R"({"tracks":[{"layer":"a","role":"input","exponent":200,"casts":0,"clipped":0,)"
                                     R"("recasts":0,"nonfinite":0,"window":[]}]})"),
               Error);
  EXPECT_THROW(range_state_from_json(R"({"tracks":[{"layer":"a","role":"input","exponent":0,"casts":0,"clipped":0,)"
                                     R"("recasts":0,"nonfinite":0,"window":[-1]}]})"),
               Error);
}

TEST(Range, ImpossibleOptions) {
  EXPECT_THROW(range_cast({}, Format::fp16, 1, {.window = 0}), Error);
  EXPECT_THROW(range_cast({}, Format::fp16, 1, {.margin = -1}), Error);
  EXPECT_THROW(range_cast({}, Format::fp16, 1, {.most = 121}), Error);
  EXPECT_THROW(range_cast({}, Format::int8, 1), Error);
}

}  // namespace
}  // namespace hpqf::plan
