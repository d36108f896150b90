#include "hpqf/observe/run/step_record.h"

#include <cmath>
#include <limits>

#include "hpqf/observe/run/fixtures_test.h"

namespace hpqf::observe {
namespace {

TEST(StepRecord, ReadsALine) {
  const auto step = parse_step(
      R"({"step":7,"epoch":1,"loss":0.1,"loss_scale":65536,"skipped":true,"cause":"layer \"a\": 3 of 8","lr":0.01,)"
      R"("samples_per_second":16,"seconds":0.5,"time":1700000000.25,"grad_norm":2,"plan_epoch":3,)"
      R"("changes":["one","two"],"unknown":{"step":99,"loss":[9]},"other":[[1,{"changes":["no"]}]]})");
  ASSERT_TRUE(step);
  EXPECT_EQ(step->step, 7);
  EXPECT_EQ(step->epoch, 1);
  EXPECT_EQ(step->loss, 0.1);
  EXPECT_EQ(step->loss_scale, 65536);
  EXPECT_TRUE(step->skipped);
  EXPECT_EQ(step->cause, "layer \"a\": 3 of 8");
  EXPECT_EQ(step->lr, 0.01);
  EXPECT_EQ(step->samples_per_second, 16);
  EXPECT_EQ(step->seconds, 0.5);
  EXPECT_EQ(step->unix_seconds, 1700000000.25);
  EXPECT_EQ(step->grad_norm, 2);
  EXPECT_EQ(step->plan_epoch, 3);
  EXPECT_EQ(step->changes, (std::vector<std::string>{"one", "two"}));
}

TEST(StepRecord, LossesThatAreNotFinite) {
  EXPECT_TRUE(std::isnan(parse_step(R"({"step":1,"loss":null,"loss_text":"nan"})")->loss));
  EXPECT_EQ(parse_step(R"({"step":1,"loss":null,"loss_text":"-inf"})")->loss, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(parse_step(R"({"step":1})")->loss)) << "nobody knows it";
  EXPECT_EQ(parse_step(R"({"step":1,"grad_norm":null,"grad_norm_text":"inf"})")->grad_norm,
            std::numeric_limits<double>::infinity());
}

TEST(StepRecord, WhatIsNoStep) {
  for (const char* line : {"", "{", "[]", "[1]", "3", "null", "\"step\"", "{}", R"({"step":1.5})", R"({"step":"1"})",
                           R"({"step":1)", R"({"step":1}})", R"({"loss":1})", "\xff\xfe", R"([{"step":1}])"}) {
    EXPECT_FALSE(parse_step(line)) << line;
  }
  EXPECT_TRUE(parse_step(R"({"step":1,"lr":"text","epoch":null,"skipped":3,"changes":7})")) << "absent, not an error";
  EXPECT_FALSE(parse_step(std::string(100000, '['))) << "depth costs no stack";
  EXPECT_FALSE(parse_step(R"({"step":1,"a":)" + std::string(100000, '[')));
}

TEST(StepRecord, EvaluationsReadBack) {
  for (const double loss : {0.1, std::numeric_limits<double>::infinity(), std::nan("")}) {
    const EvaluationRecord want{12, 3, loss, 0.9, 100, 1.7e9};
    const auto got = parse_evaluation(evaluation_line(want));
    ASSERT_TRUE(got);
    EXPECT_EQ(got->step, 12);
    EXPECT_EQ(got->epoch, 3);
    EXPECT_TRUE(got->loss == loss || (std::isnan(got->loss) && std::isnan(loss)));
    EXPECT_EQ(got->accuracy, 0.9);
    EXPECT_EQ(got->samples, 100);
    EXPECT_EQ(got->unix_seconds, 1.7e9);
  }
  EXPECT_FALSE(parse_evaluation(evaluation_line({1, 0, 1, std::nullopt, 1, std::nullopt}))->accuracy);
}

}  // namespace
}  // namespace hpqf::observe
