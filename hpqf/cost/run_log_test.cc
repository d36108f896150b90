#include "hpqf/cost/run_log.h"

#include <gtest/gtest.h>

#include "hpqf/base/error.h"

namespace hpqf::cost {
namespace {

TEST(RunLog, SumsTimeAndSamples) {
  const RunLog log = read_run_log(
      "{\"step\":1,\"epoch\":0,\"loss\":2,\"samples\":8,\"seconds\":1,\"wall_seconds\":1.5}\n"
      "{\"step\":2,\"epoch\":0,\"loss\":null,\"skipped\":true,\"samples\":8,\"seconds\":1,\"wall_seconds\":1.25}\n"
      "{\"step\":3,\"epoch\":1,\"loss\":1,\"samples\":4,\"seconds\":0.5,\"wall_seconds\":0.5}\n",
      "m", 0);
  EXPECT_EQ(log.steps, 3);
  EXPECT_EQ(log.skipped, 1);
  EXPECT_EQ(log.epochs, 2);
  EXPECT_EQ(log.epoch_samples, 16);
  EXPECT_EQ(log.samples, 20);
  EXPECT_EQ(log.step_seconds, 2.5);
  EXPECT_EQ(log.wall_seconds, 3.25);
  EXPECT_EQ(log.repeated_seconds, 0);
  EXPECT_FALSE(log.torn);
  EXPECT_EQ(log.loss.size(), 2u);
}

TEST(RunLog, OldLinesGiveTheirTimeBySpeed) {
  const RunLog log =
      read_run_log("{\"step\":1,\"samples_per_second\":32}\n{\"step\":2,\"samples_per_second\":64}\n", "m", 64);
  EXPECT_EQ(log.samples, 128);
  EXPECT_EQ(log.wall_seconds, 3);
  EXPECT_EQ(log.without_time, 0);
  EXPECT_EQ(read_run_log("{\"step\":1,\"samples_per_second\":32}\n", "m", 0).without_time, 1);
  EXPECT_EQ(read_run_log("{\"step\":1,\"samples_per_second\":32}\n", "m", 0).without_samples, 1);
}

TEST(RunLog, ResumedRunsPayForWhatTheyRepeat) {
  // The trainer drops the lines of repeated steps and says what they took.
  const RunLog trainer = read_run_log(
      "{\"step\":1,\"samples\":8,\"seconds\":1,\"wall_seconds\":1}\n"
      "{\"step\":2,\"samples\":8,\"seconds\":1,\"wall_seconds\":1,\"repeated_seconds\":2.5}\n",
      "m", 0);
  EXPECT_EQ(trainer.wall_seconds, 4.5);
  EXPECT_EQ(trainer.repeated_seconds, 2.5);
  EXPECT_EQ(trainer.samples, 16);
  // A log that kept them.
  const RunLog kept = read_run_log(
      "{\"step\":1,\"samples\":8,\"seconds\":1}\n{\"step\":2,\"samples\":8,\"seconds\":1}\n"
      "{\"step\":2,\"samples\":8,\"seconds\":2}\n{\"step\":3,\"samples\":8,\"seconds\":1}\n",
      "m", 0);
  EXPECT_EQ(kept.steps, 3);
  EXPECT_EQ(kept.samples, 24);
  EXPECT_EQ(kept.wall_seconds, 5);
  EXPECT_EQ(kept.repeated_seconds, 2);
}

TEST(RunLog, KilledWhileWriting) {
  const RunLog log = read_run_log("{\"step\":1,\"samples\":8,\"seconds\":1}\n{\"step\":2,\"sam", "m", 0);
  EXPECT_TRUE(log.torn);
  EXPECT_EQ(log.steps, 1);
}

TEST(RunLog, AClockSetBackCountsAsNothing) {
  const RunLog log = read_run_log(
      "{\"step\":1,\"samples\":8,\"seconds\":1,\"wall_seconds\":-3600}\n{\"step\":2,\"samples\":8,\"seconds\":1,\"wall_"
      "seconds\":1}\n",
      "m", 0);
  EXPECT_EQ(log.wrong_time, 1);
  EXPECT_EQ(log.wall_seconds, 1);
}

TEST(RunLog, DamageInTheMiddleIsRefused) {
  for (const char* text :
       {"{\"step\":1}\n{\"st\n{\"step\":3}\n", "{\"step\":1}\n7\n{\"step\":3}\n", "{\"loss\":1}\n{\"step\":3}\n"}) {
    try {
      read_run_log(text, "runs/a/metrics.jsonl", 0);
      FAIL() << text;
    } catch (const Error& e) {
      EXPECT_NE(e.asked().find("runs/a/metrics.jsonl, line "), std::string::npos) << e.what();
    }
  }
}

TEST(RunLog, EmptyLog) { EXPECT_EQ(read_run_log("", "m", 0).steps, 0); }

}  // namespace
}  // namespace hpqf::cost
