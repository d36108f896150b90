#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hpqf/base/error.h"
#include "hpqf/observe/monitor/gradient_detector.h"
#include "hpqf/observe/monitor/gradient_observation.h"

namespace hpqf::observe {
namespace {

GradientObservation seen(int64_t step, double norm, const char* layer = "fc") {
  return {.step = step, .layer = layer, .elements = 10, .norm = norm};
}

// Feeds norms one by one; the steps at which something was found.
struct Detector {
  DetectorOptions options;
  DetectorState state;
  int64_t step = 0;
  std::vector<Finding> feed(GradientObservation o) {
    o.step = ++step;
    Detection d = detect(state, {o}, options);
    state = std::move(d.state);
    return std::move(d.findings);
  }
  std::vector<Finding> feed(double norm) { return feed(seen(0, norm)); }
  void settle(int n = 10) {
    for (int i = 0; i < n; ++i) EXPECT_TRUE(feed(1 + 0.1 * (i % 3)).empty());
  }
};

TEST(GradientDetector, ExplosionIsRaisedOnceAndAgainOnlyAfterItWasOver) {
  Detector run;
  run.settle();
  const auto found = run.feed(100);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].trouble, Trouble::explosion);
  EXPECT_NEAR(found[0].value, 100 / 1.1, 1e-9);
  EXPECT_NE(found[0].text.find("layer fc"), std::string::npos);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(run.feed(100).empty());
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(run.feed(1).empty());  // over, and cooled down
  EXPECT_EQ(run.feed(100).size(), 1u);
}

TEST(GradientDetector, CoolDownSilencesAFlutter) {
  Detector run;
  run.options.cool_down = 8;
  run.settle();
  int raised = 0;
  for (int i = 0; i < 8; ++i) raised += static_cast<int>(run.feed(i % 2 ? 1 : 100).size());
  EXPECT_EQ(raised, 1);
}

TEST(GradientDetector, BetweenTheThresholdsItIsNotOver) {
  Detector run;
  run.options.cool_down = 0;
  run.settle();
  EXPECT_EQ(run.feed(100).size(), 1u);
  EXPECT_TRUE(run.feed(10).empty());   // 10 x: neither exploding nor over
  EXPECT_TRUE(run.feed(100).empty());  // so this is the same alarm
  EXPECT_TRUE(run.feed(2).empty());
  EXPECT_EQ(run.feed(100).size(), 1u);
}

TEST(GradientDetector, VanishingAndZero) {
  Detector run;
  run.settle();
  EXPECT_EQ(run.feed(1e-4).at(0).trouble, Trouble::vanishing);
  Detector zero;
  zero.settle();
  EXPECT_EQ(zero.feed(0).at(0).trouble, Trouble::vanishing);
}

TEST(GradientDetector, ASteadyDriftIsNoAlarm) {
  Detector run;
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(run.feed(std::pow(1.1, i)).empty()) << i;
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(run.feed(std::pow(1.1, 200 - i)).empty()) << i;
}

TEST(GradientDetector, NonFiniteIsSaidAtOnceAndDoesNotPoisonTheMedian) {
  Detector run;
  GradientObservation bad = seen(0, 3);
  bad.nan = 2;
  EXPECT_EQ(run.feed(bad).at(0).trouble, Trouble::nonfinite);
  EXPECT_TRUE(run.feed(bad).empty());
  run.settle();
  EXPECT_EQ(run.feed(100).at(0).trouble, Trouble::explosion);
  EXPECT_EQ(run.feed(bad).size(), 1u);  // worse than the alarm that stands
}

TEST(GradientDetector, TimeStepsOfARecurrentLayer) {
  Detector run;
  GradientObservation o = seen(0, 1);
  o.subject = Subject::input_grad;
  o.time_norms = {1, 1, 1};
  EXPECT_TRUE(run.feed(o).empty());
  o.time_norms = {1e-6, 1e-3, 1};
  EXPECT_EQ(run.feed(o).at(0).trouble, Trouble::vanishing);
}

TEST(GradientDetector, StateSurvivesJsonExactly) {
  Detector run;
  run.settle();
  run.feed(1.0 / 3);
  run.feed(1e9);
  EXPECT_EQ(DetectorState::from_json(run.state.to_json()), run.state);
  EXPECT_THROW(DetectorState::from_json("{\"a\":{}}"), Error);
  EXPECT_THROW(DetectorState::from_json("{"), Error);
}

TEST(GradientDetector, MemoryIsTheWindow) {
  Detector run;
  for (int i = 0; i < 1000; ++i) run.feed(1);
  EXPECT_EQ(run.state.tracks.begin()->second.norms.size(), 21u);
}

TEST(GradientDetector, RefusesImpossibleThresholds) {
  for (DetectorOptions bad :
       {DetectorOptions{.window = 1}, DetectorOptions{.explode = 0.5}, DetectorOptions{.vanish = 2},
        DetectorOptions{.explode_over = 100}, DetectorOptions{.cool_down = -1}})
    EXPECT_THROW(check(bad), Error);
  EXPECT_NO_THROW(check(DetectorOptions{}));
}

TEST(GradientObservation, SurvivesItsLine) {
  GradientObservation o = seen(7, 0.1, "a\"b");
  o.subject = Subject::input_grad;
  o.kurtosis = 3.5;
  o.sqnr_db = -2.5;
  o.mean = -0.25;
  o.nan = 1;
  o.time_norms = {1, 0.5};
  EXPECT_EQ(observation_from_json(to_json_line(o), "line"), o);
  o.update_ratio = std::numeric_limits<double>::infinity();  // has no JSON
  EXPECT_EQ(to_json_line(o).find("update_ratio"), std::string::npos);
  EXPECT_THROW(observation_from_json("{\"step\":1}", "line"), Error);
}

TEST(GradientObservation, SharesAreOfWhatCouldBeLost) {
  const float x[] = {0, 0, 1e-9f, 1, 1e6f, std::numeric_limits<float>::quiet_NaN()};
  GradientObservation o;
  fill(o, kernels::tensor_stats(x, 6, kernels::stats_range(Format::fp16)));
  EXPECT_DOUBLE_EQ(o.underflow, 1.0 / 3);  // of three nonzero finite values
  EXPECT_DOUBLE_EQ(o.overflow, 1.0 / 5);   // of five finite ones
  EXPECT_EQ(o.nan, 1);
}

}  // namespace
}  // namespace hpqf::observe
