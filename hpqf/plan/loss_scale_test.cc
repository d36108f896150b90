#include "hpqf/plan/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "hpqf/base/error.h"

namespace hpqf::plan {
namespace {

// Runs a recorded sequence: '.' a clean step, 'x' a step with non-finite gradients.
LossScaleState run(LossScaleState state, const std::string& steps, const LossScaleOptions& options) {
  for (char step : steps) state = update(state, step == '.', options).state;
  return state;
}

std::string clean(int64_t n) { return std::string(static_cast<size_t>(n), '.'); }

TEST(LossScale, StartsAtInit) {
  const LossScaleState state = initial({});
  EXPECT_EQ(state.scale, 65536.0);
  EXPECT_EQ(state.skipped_total, 0);
}

TEST(LossScale, GrowsAfterACleanIntervalOnly) {
  const LossScaleOptions options;
  LossScaleState state = run(initial(options), clean(1999), options);
  EXPECT_EQ(state.scale, 65536.0);
  const LossScaleChange change = update(state, true, options);
  EXPECT_EQ(change.state.scale, 131072.0);
  EXPECT_EQ(change.reason, "2000 clean steps: 65536 -> 131072");
  EXPECT_EQ(change.state.best_scale, 65536.0);
  EXPECT_EQ(change.state.clean_steps, 0);
  // A bad step in between starts the interval again.
  state = run(initial(options), clean(1999) + "x" + clean(1999), options);
  EXPECT_EQ(state.scale, 65536.0);
}

TEST(LossScale, HysteresisSkipsFirstAndBacksOffThen) {
  const LossScaleOptions options{.hysteresis = 3};
  LossScaleState state = run(initial(options), "xx", options);
  EXPECT_EQ(state.scale, 65536.0);
  EXPECT_EQ(state.skipped_total, 2);
  const LossScaleChange change = update(state, false, options);
  EXPECT_EQ(change.state.scale, 32768.0);
  EXPECT_EQ(change.reason, "3 bad steps in a row: 65536 -> 32768");
  EXPECT_EQ(run(change.state, "x", options).scale, 16384.0) << "each further bad step backs off";
  EXPECT_EQ(run(initial(options), "xx.xx.xx.", options).scale, 65536.0) << "consecutive ones count";
  EXPECT_EQ(run(initial({.hysteresis = 1}), "x", {.hysteresis = 1}).scale, 32768.0);
}

TEST(LossScale, RepeatedOverflowNeverSinksUnderTheFloor) {
  const LossScaleOptions options{.floor = 3.0};
  LossScaleState state = initial(options);
  for (int i = 0; i < 5000; ++i) {
    state = update(state, false, options).state;
    ASSERT_GE(state.scale, 3.0);
  }
  EXPECT_EQ(state.scale, 3.0) << "lands on the floor, not on the next power of two";
  EXPECT_EQ(state.skipped_total, 5000);
  EXPECT_EQ(update(state, false, options).reason, "") << "the scale stays";
}

TEST(LossScale, GrowthNeverPassesTheCap) {
  const LossScaleOptions options{.cap = 100000.0, .growth_interval = 1};
  LossScaleState state = initial(options);
  for (int i = 0; i < 5000; ++i) {
    state = update(state, true, options).state;
    ASSERT_LE(state.scale, 100000.0);
    ASSERT_TRUE(std::isfinite(state.scale));
  }
  EXPECT_EQ(state.scale, 100000.0);
  EXPECT_EQ(update(state, true, options).reason, "");
}

TEST(LossScale, RecoversFastUpToTheBestScaleAndSlowlyBeyond) {
  const LossScaleOptions options;
  LossScaleState state = run(initial(options), clean(2000) + clean(2000), options);  // 2^16 and 2^17 worked; now 2^18
  ASSERT_EQ(state.best_scale, 131072.0);
  state = run(state, clean(150) + "xxxx", options);  // one batch of NaN: three backoffs
  ASSERT_EQ(state.scale, 32768.0);
  state = run(state, clean(100), options);
  EXPECT_EQ(state.scale, 65536.0);
  state = run(state, clean(100), options);
  EXPECT_EQ(state.scale, 131072.0);
  state = run(state, clean(1999), options);
  EXPECT_EQ(state.scale, 131072.0) << "at the best scale the long interval holds again";
  EXPECT_EQ(run(state, ".", options).scale, 262144.0);
}

TEST(LossScale, ABestScaleThatFailsAgainIsForgotten) {
  // 2^16 worked once and overflows now: the short interval must not probe it every 100 steps for the rest of the run.
  const LossScaleOptions options;
  LossScaleState state = initial(options);
  state.best_scale = 65536.0;
  for (int step = 0; step < 20000; ++step) state = update(state, state.scale < 65536.0, options).state;
  EXPECT_LE(state.skipped_total, 2 * (20000 / 2000) + 4);
}

TEST(LossScale, DisabledStaysAtOneAndStillCountsSkips) {
  const LossScaleOptions options{.growth_interval = 1, .enabled = false};
  LossScaleState state = initial(options);
  EXPECT_EQ(state.scale, 1.0);
  state = run(state, "..xx..xxx.", options);
  EXPECT_EQ(state.scale, 1.0);
  EXPECT_EQ(state.skipped_total, 5);
}

TEST(LossScale, StaticScale) {
  const LossScaleOptions options{.init = 1024, .growth = 1, .backoff = 1, .growth_interval = 1};
  EXPECT_NO_THROW(check(options));
  EXPECT_EQ(run(initial(options), "....xxxxx..x", options).scale, 1024.0);
}

TEST(LossScale, StateFromOtherOptionsIsBroughtInside) {
  LossScaleState state = initial({});
  const LossScaleChange change = update(state, true, {.init = 16, .cap = 1024});
  EXPECT_EQ(change.state.scale, 1024.0);
  EXPECT_EQ(change.reason, "65536 -> 1024: outside [1, 1024]");
  EXPECT_EQ(update(state, true, {.enabled = false}).state.scale, 1.0);
}

TEST(LossScale, IsPure) {
  const LossScaleOptions options;
  const LossScaleState state = run(initial(options), "..x.", options), copy = state;
  EXPECT_EQ(update(state, false, options).state, update(state, false, options).state);
  EXPECT_EQ(state, copy);
}

TEST(LossScale, ImpossibleOptionsAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const LossScaleOptions bad[] = {{.init = 0},          {.init = nan},           {.init = inf},     {.growth = 0.5},
                                  {.growth = nan},      {.backoff = 0},          {.backoff = 1.5},  {.backoff = nan},
                                  {.floor = 0},         {.floor = -1},           {.floor = 1e6},    {.cap = 0.5},
                                  {.cap = inf},         {.growth_interval = 0},  {.hysteresis = 0}, {.init = 0.5},
                                  {.init = 33554432.0}, {.recovery_interval = 0}};
  for (const LossScaleOptions& options : bad) EXPECT_THROW(initial(options), Error) << &options - bad;
}

TEST(LossScale, JsonRoundTripIsExact) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    LossScaleState state;
    state.scale = std::ldexp(1.0 + std::generate_canonical<double, 53>(random), static_cast<int>(random() % 60) - 20);
    state.best_scale = state.scale / 3;
    state.clean_steps = static_cast<int64_t>(random() >> 1);
    state.bad_steps = static_cast<int>(random() % 100);
    state.skipped_total = static_cast<int64_t>(random() >> 1);
    ASSERT_EQ(loss_scale_state_from_json(to_json(state)), state) << to_json(state);
  }
}

TEST(LossScale, JsonErrorsNameTheKey) {
  auto error = [](std::string text) -> std::string {
    try {
      loss_scale_state_from_json(text, "ck");
    } catch (const Error& e) {
      return e.asked();
    }
    return "no error";
  };
  const std::string good = to_json(LossScaleState{});
  EXPECT_EQ(error(good), "no error");
  auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << good;
    return text.replace(at, from.size(), to);
  };
  EXPECT_EQ(error(with("65536.0", "null")).find("ck, key \"scale\""), 0u);
  EXPECT_EQ(error(with("65536.0", "0")).find("ck, key \"scale\""), 0u);
  EXPECT_EQ(error(with("65536.0", "-2")).find("ck, key \"scale\""), 0u);
  EXPECT_EQ(error(with("\"bad_steps\":0", "\"bad_steps\":9999999999")).find("ck, key \"bad_steps\""), 0u);
  EXPECT_EQ(error(with("\"bad_steps\":0,", "")), "ck: no key \"bad_steps\"");
  EXPECT_EQ(error(with("\"bad_steps\":0", "\"bad_steps\":0,\"x\":0")), "ck: unknown key \"x\"");
  EXPECT_NE(error(good.substr(0, good.size() / 2)).find("ends too early"), std::string::npos);
}

}  // namespace
}  // namespace hpqf::plan
