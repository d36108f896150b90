#include "hpqf/cost/memory.h"

#include <gtest/gtest.h>

#include "hpqf/base/error.h"
#include "hpqf/cost/reference_models.h"

namespace hpqf::cost {
namespace {

BlockFormat format(const char* text) { return formats::parse_block_format(text); }

TEST(Memory, BytesPerElementCountTheScales) {
  EXPECT_EQ(bytes_per_element(format("fp32")), 4);
  EXPECT_EQ(bytes_per_element(format("bf16")), 2);
  EXPECT_EQ(bytes_per_element(format("int12")), 2 + 4.0 / 64);
  EXPECT_EQ(bytes_per_element(format("int8[1x256]")), 1 + 4.0 / 256);
  EXPECT_EQ(bytes_per_element(format("int4[1x128]")), 0.5 + 4.0 / 128);
  EXPECT_EQ(bytes_per_element(format("fp8")), 1);
}

// Recipes that others ship, and the bytes per parameter they come to with Adam.
TEST(Memory, KnownRecipes) {
  const BlockFormat fp32 = format("fp32"), bf16 = format("bf16"), eight = format("int8[1x256]"),
                    four = format("int4[1x128]");
  struct Recipe {
    const char* who;
    StateFormats formats;
    double bytes;
  };
  const Recipe recipes[] = {
      {"fp32 everything", {{}, fp32, fp32, fp32}, 16},
      {"bf16 compute, fp32 master and gradients", {bf16, fp32, fp32, fp32}, 18},
      {"the same, bf16 gradients", {bf16, fp32, bf16, fp32}, 16},
      {"bf16 moments (DeepSeek-V3)", {bf16, fp32, fp32, bf16}, 14},
      {"fp32 weights, bf16 moments, no copy", {{}, fp32, fp32, bf16}, 12},
      {"bf16, fp32 master, bf16 gradients, 8-bit states", {bf16, fp32, bf16, eight}, 10.03},
      {"bf16, no master, 8-bit states", {bf16, {}, bf16, eight}, 6.03},
      {"bf16, no master, 4-bit states", {bf16, {}, bf16, four}, 5.06},
      {"the same 8-bit, gradients released layer by layer", {bf16, {}, {}, eight}, 4.03},
  };
  for (const Recipe& recipe : recipes)
    EXPECT_NEAR(bytes_per_parameter(recipe.formats), recipe.bytes, 0.005) << recipe.who;
}

TEST(Memory, OptimizerStates) {
  EXPECT_EQ(optimizer_states("adamw"), 2);
  EXPECT_EQ(optimizer_states("momentum"), 1);
  EXPECT_EQ(optimizer_states("sgd"), 0);
  EXPECT_THROW(optimizer_states("lion"), Error);
}

TEST(Memory, TrainingInFp32TakesSixteenBytesAParameter) {
  const Workload work = reference_workload("gpt2");
  const Memory memory = training_memory(work, PrecisionPlan(), 1, 2);
  EXPECT_EQ(memory.parameters + memory.gradients + memory.states, 16 * work.parameters());
  EXPECT_GT(memory.activations, 0);
}

TEST(Memory, SixteenBitActivationsTakeHalf) {
  const Workload work = reference_workload("resnet18");
  const Memory fp32 = training_memory(work, PrecisionPlan(), 8, 1);
  const Memory bf16 = training_memory(work, PrecisionPlan::uniform("bf16"), 8, 1);
  EXPECT_EQ(bf16.activations * 2, fp32.activations);
  EXPECT_EQ(bf16.states, fp32.states);
  EXPECT_EQ(training_memory(work, PrecisionPlan(), 16, 1).activations, 2 * fp32.activations);
}

TEST(Memory, ActivationsOfALinearLayerByHand) {
  Workload work;
  work.ops = {linear("a", 4, 10, 6), elementwise("", "relu", 24), linear("b", 4, 6, 2)};
  EXPECT_EQ(training_memory(work, PrecisionPlan(), 3, 0).activations, 3 * 4 * (40 + 24 + 24));
  const PrecisionPlan half = PrecisionPlan::with_sensitive("bf16", {"b"});
  EXPECT_EQ(training_memory(work, half, 3, 0).activations, 3 * (2 * (40 + 24) + 4 * 24));
}

}  // namespace
}  // namespace hpqf::cost
