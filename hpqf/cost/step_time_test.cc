#include "hpqf/cost/step_time.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hpqf/base/error.h"
#include "hpqf/cost/device_test.h"
#include "hpqf/cost/memory.h"
#include "hpqf/cost/reference_models.h"

namespace hpqf::cost {
namespace {

Workload one(Op op) {
  Workload work;
  work.ops = {std::move(op)};
  return work;
}

TEST(StepTime, SizeEfficiencyHitsItsPoints) {
  EXPECT_NEAR(size_efficiency(1e9 / 312e12), 0.6 / 0.95, 1e-12);
  EXPECT_NEAR(size_efficiency(16e9 / 312e12), 0.9 / 0.95, 1e-12);
  EXPECT_EQ(size_efficiency(1), 1);
  EXPECT_NEAR(size_efficiency(0), 0.6 / 0.95, 1e-12);
  EXPECT_NEAR(size_efficiency(4e9 / 312e12), 0.75 / 0.95, 1e-12);  // half way in the logarithm
}

TEST(StepTime, RingAllReduce) {
  EXPECT_EQ(ring_all_reduce_seconds(1e9, 1, 1e9, 1e-3), 0);
  EXPECT_DOUBLE_EQ(ring_all_reduce_seconds(1e9, 2, 1e9, 1e-3), 1 + 2e-3);
  EXPECT_DOUBLE_EQ(ring_all_reduce_seconds(1e9, 8, 1e9, 1e-3), 1.75 + 14e-3);
}

// 1024 rows, 4096 in, 4096 out: 34.36 GFLOP a product, 34.36 ms at 1 TFLOP/s: far beyond the 0.4 ms of full efficiency.
TEST(StepTime, ComputeBoundProductByHand) {
  const StepTime step = step_time(one(linear("a", 1024, 4096, 4096, false)), PrecisionPlan(), toy_device(),
                                  {.batch = 1, .optimizer_states = 2, .left_out = {}});
  EXPECT_NEAR(step.products, 3 * 2.0 * 1024 * 4096 * 4096 / 1e12, 1e-12);
  EXPECT_EQ(step.memory_bound, 0);
  EXPECT_EQ(step.casts, 0);
  EXPECT_NEAR(step.optimizer, 4096.0 * 4096 * 4 * 7 / 100e9, 1e-12);
  EXPECT_NEAR(step.launches, 3e-6, 1e-15);
  EXPECT_NEAR(step.total(), step.products + step.optimizer + step.launches, 1e-15);
  EXPECT_NEAR(step.utilisation(toy_device()), step.products / step.total(), 1e-9);
}

// 1 row: 4096 x 4096 weights of 4 bytes at 100 GB/s take 671 us, their 33.6 MFLOP 34 us at 1 TFLOP/s.
TEST(StepTime, MemoryBoundProductByHand) {
  const StepTime step = step_time(one(linear("a", 1, 4096, 4096, false)), PrecisionPlan(), toy_device(), {.batch = 1});
  const double bytes = 4 * (4096.0 * 4096 + 2 * 4096);
  EXPECT_NEAR(step.products, 3 * bytes / 100e9, 1e-12);
  EXPECT_NEAR(step.memory_bound, step.products, 1e-15);
}

TEST(StepTime, LowPrecisionPaysForItsCasts) {
  const Workload work = one(linear("a", 1024, 4096, 4096, false));
  const StepTime step = step_time(work, PrecisionPlan::uniform("bf16"), toy_device(), {.batch = 1});
  EXPECT_NEAR(step.products, 3 * 2.0 * 1024 * 4096 * 4096 / 8e12, 1e-9);
  EXPECT_NEAR(step.casts, 4096.0 * 4096 * (4 + 2) / 100e9, 1e-12);  // the weight; activations are bf16 already
  ASSERT_EQ(step.formats.size(), 1u);
  EXPECT_EQ(step.formats[0].format, Format::bf16);
  EXPECT_EQ(step.emulated_flops, 0);

  // int8[1x64]: weight from fp32, input and gradient from 16 bit, each read once and written once.
  const StepTime int8 = step_time(work, PrecisionPlan::uniform("int8"), toy_device(), {.batch = 1});
  const double code = 1 + 4.0 / 64;
  EXPECT_NEAR(int8.casts, (4096.0 * 4096 * (4 + code) + 2 * 1024 * 4096.0 * (2 + code)) / 100e9, 1e-12);
}

TEST(StepTime, CastsAreNotCountedTwice) {
  DeviceRates device = toy_device();
  device.casts_in_rates = true;
  const Workload work = one(linear("a", 1024, 4096, 4096, false));
  EXPECT_EQ(step_time(work, PrecisionPlan::uniform("int8"), device, {.batch = 1}).casts, 0);
  EXPECT_GT(step_time(work, PrecisionPlan::uniform("fp16"), device, {.batch = 1}).casts, 0);  // emulated
}

TEST(StepTime, FormatsTheDeviceLacksAreEmulatedAndSlower) {
  const Workload work = one(linear("a", 1024, 4096, 4096, false));
  const StepTime fp32 = step_time(work, PrecisionPlan(), toy_device(), {.batch = 1});
  const StepTime fp16 = step_time(work, PrecisionPlan::uniform("fp16"), toy_device(), {.batch = 1});
  EXPECT_EQ(fp16.emulated_flops, fp16.flops);
  EXPECT_EQ(fp16.emulated_names, std::vector<std::string>{"fp16"});
  EXPECT_NEAR(fp16.products, fp32.products, 1e-12);
  EXPECT_GT(fp16.roofline(), fp32.roofline());
}

TEST(StepTime, OneFp32OperandMakesTheProductFp32) {
  LayerPrecision mixed = plan::uniform_precision("bf16");
  mixed.wgrad = {};
  const PrecisionPlan plan({{"*", mixed}});
  const StepTime step = step_time(one(linear("a", 1024, 4096, 4096, false)), plan, toy_device(), {.batch = 1});
  const double product = 2.0 * 1024 * 4096 * 4096;
  EXPECT_NEAR(step.products, product / 8e12 * 2 + product / 1e12, 1e-9);
  EXPECT_EQ(step.emulated_flops, 0);
  ASSERT_EQ(step.formats.size(), 2u);
  EXPECT_EQ(step.formats[0].flops, 2 * product);
}

TEST(StepTime, Tf32ComputesOnFp32Words) {
  const Workload work = one(linear("a", 1024, 4096, 4096, false));
  const StepTime step = step_time(work, PrecisionPlan::uniform("tf32"), toy_device(), {.batch = 1});
  EXPECT_NEAR(step.products, 3 * 2.0 * 1024 * 4096 * 4096 / 4e12, 1e-9);
  EXPECT_EQ(step.casts, 0);
}

TEST(StepTime, OpsWithoutProductsFollowTheFormatBeforeThem) {
  Workload work = one(linear("a", 1, 8, 8, false));
  work.ops.push_back(elementwise("", "relu", 1e6));
  const double fp32 = step_time(work, PrecisionPlan(), toy_device(), {.batch = 1}).others;
  EXPECT_NEAR(fp32, 1e6 * 4 * (2 + 3) / 100e9, 1e-15);
  EXPECT_NEAR(step_time(work, PrecisionPlan::uniform("bf16"), toy_device(), {.batch = 1}).others, fp32 / 2, 1e-15);
}

TEST(StepTime, CommunicationHidesBehindBackwardWork) {
  const Workload work = one(linear("a", 1024, 4096, 4096, false));
  StepOptions options{.batch = 1, .devices = 4};
  const StepTime open = step_time(work, PrecisionPlan(), toy_device(), options);
  EXPECT_NEAR(open.communication, ring_all_reduce_seconds(4096.0 * 4096 * 4, 4, 10e9, 5e-6), 1e-12);
  EXPECT_EQ(open.exposed, open.communication);
  options.overlap = 1;
  EXPECT_EQ(step_time(work, PrecisionPlan(), toy_device(), options).exposed, 0);  // 68 ms of backward, 10 ms of it
}

TEST(StepTime, WhatIsLeftOutIsTheSameForEveryPlan) {
  const Workload work = one(linear("a", 1024, 4096, 4096, false));
  const StepOptions options{.batch = 1, .left_out = {0.1, 0.2, 0.4}};
  const StepTime fp32 = step_time(work, PrecisionPlan(), toy_device(), options);
  const StepTime bf16 = step_time(work, PrecisionPlan::uniform("bf16"), toy_device(), options);
  EXPECT_DOUBLE_EQ(bf16.left_out.mid, 0.2 * bf16.roofline());
  EXPECT_EQ(fp32.left_out.mid, bf16.left_out.mid);
  EXPECT_EQ(fp32.left_out.high, bf16.left_out.high);
  EXPECT_DOUBLE_EQ(fp32.total(), fp32.roofline() + fp32.left_out.mid);
  EXPECT_THROW(step_time(work, PrecisionPlan(), toy_device(), {.left_out = {0.5, 0.2, 1}}), Error);
  DeviceRates plain = toy_device();
  plain.formats.resize(1);  // fp32 alone
  EXPECT_DOUBLE_EQ(step_time(work, PrecisionPlan(), plain, options).left_out.mid,
                   0.2 * step_time(work, PrecisionPlan(), plain, options).roofline());
}

TEST(StepTime, SensitiveLayersStayFp32) {
  const Workload work = reference_workload("resnet20");
  const auto seconds = [&](const PrecisionPlan& plan) { return step_time(work, plan, toy_device(), {.batch = 128}); };
  const StepTime all = seconds(PrecisionPlan::uniform("bf16"));
  const StepTime some = seconds(PrecisionPlan::with_sensitive("bf16", {"conv1", "fc"}));
  EXPECT_LT(all.products, some.products);
  EXPECT_LT(some.products, seconds(PrecisionPlan()).products);
  ASSERT_EQ(some.formats.size(), 2u);
  EXPECT_EQ(some.formats[1].format, Format::fp32);
  EXPECT_NEAR(some.formats[1].flops, 128 * 2 * (2 * 16 * 27.0 * 1024) + 128 * 3 * 2 * 640.0, 1e-3);
}

TEST(StepTime, ErrorComesFromTheWeakestRateUsed) {
  DeviceRates device = toy_device();
  device.formats[2].rate.basis = Basis::modelled;  // bf16
  const Workload work = one(linear("a", 64, 64, 64));
  EXPECT_EQ(step_time(work, PrecisionPlan(), device, {}).error, relative_error(Basis::quoted));
  EXPECT_EQ(step_time(work, PrecisionPlan::uniform("bf16"), device, {}).error, relative_error(Basis::modelled));
}

TEST(StepTime, RefusesTheImpossible) {
  const Workload work = one(linear("a", 64, 64, 64));
  EXPECT_THROW(step_time(work, PrecisionPlan(), toy_device(), {.batch = 0}), Error);
  EXPECT_THROW(step_time(work, PrecisionPlan(), toy_device(), {.devices = 0}), Error);
  EXPECT_THROW(step_time(work, PrecisionPlan(), toy_device(), {.overlap = 1.5}), Error);
  DeviceRates device = toy_device();
  device.link.value = 0;
  EXPECT_THROW(step_time(work, PrecisionPlan(), device, {.devices = 2}), Error);
  device = toy_device();
  device.formats.erase(device.formats.begin());  // fp32
  EXPECT_THROW(step_time(work, PrecisionPlan(), device, {}), Error);
  device = toy_device();
  device.bandwidth_achievable.value = 1.2;
  EXPECT_THROW(step_time(work, PrecisionPlan(), device, {}), Error);
}

TEST(StepTime, AssumptionsNameTheirBasis) {
  const auto list = step_assumptions(toy_device(), {.devices = 2});
  EXPECT_GE(list.size(), 8u);
  const auto has = [&](const char* words) {
    return std::any_of(list.begin(), list.end(),
                       [&](const Assumption& a) { return a.text.find(words) != a.text.npos; });
  };
  EXPECT_TRUE(has("toy bf16: large products reach 8 TFLOP/s of 8 peak (quoted: made up)"));
  EXPECT_TRUE(has("ring of 2 devices"));
}

}  // namespace
}  // namespace hpqf::cost
