#include "hpqf/cost/workload.h"

#include <gtest/gtest.h>

#include <map>

#include "hpqf/base/error.h"
#include "hpqf/cost/reference_models.h"

namespace hpqf::cost {
namespace {

std::map<std::string, double> flops_by_op(const Workload& work) {
  std::map<std::string, double> sums;
  for (const Op& op : work.ops) sums[op.op] += op.flops;
  return sums;
}

// Parameters as torchvision 0.x and transformers publish them for these models.
TEST(Workload, PublishedParameterCounts) {
  EXPECT_EQ(resnet18().parameters(), 11689512);
  EXPECT_EQ(resnet50().parameters(), 25557032);
  EXPECT_EQ(resnet20({32, 3, 10}).parameters(), 269722);
  EXPECT_EQ(reference_workload("bert-base").parameters(), 109482240 + 768 * 2 + 2);  // BertModel and a classifier
  EXPECT_EQ(reference_workload("bert-large").parameters(), 335141888 + 1024 * 2 + 2);
  EXPECT_EQ(reference_workload("gpt2").parameters(), 124439808);
}

// Written as a table of stages, independently of how the model builds itself: {blocks, in, width, out size}.
TEST(Workload, ResNet50ByStages) {
  double macs = 112.0 * 112 * 3 * 64 * 49;
  const double stages[4][4] = {{3, 64, 64, 56}, {4, 256, 128, 28}, {6, 512, 256, 14}, {3, 1024, 512, 7}};
  for (const auto& [blocks, in, width, size] : stages) {
    const double pixels = size * size, out = 4 * width;
    const double before = in == 64 ? pixels : 4 * pixels;  // the first 1x1 sees the image before the stride
    macs += before * in * width + pixels * (9 * width * width + width * out + in * out);
    macs += (blocks - 1) * pixels * (out * width + 9 * width * width + width * out);
  }
  macs += 2048 * 1000;
  EXPECT_EQ(resnet50().forward_flops(), 2 * macs);
  EXPECT_NEAR(macs, 4.09e9, 0.01e9);  // what torchvision's documentation says
  EXPECT_NEAR(resnet18().forward_flops() / 2, 1.814e9, 0.001e9);
}

// 6 N a token, less the embeddings, plus attention: Kaplan et al. 2020; Chowdhery et al. 2022, appendix B.
TEST(Workload, GptClosedForm) {
  const double layers = 12, h = 768, seq = 1024, vocab = 50257;
  const double matrices = 12 * layers * h * h + h * vocab;  // without biases, norms and embeddings
  const double attention = 2 * layers * 2 * seq * h;        // forward FLOPs a token, counted in full
  const Workload work = reference_workload("gpt2");
  EXPECT_EQ(work.forward_flops(), seq * (2 * matrices + attention));
  EXPECT_EQ(work.training_flops(), 3 * work.forward_flops());
  ReferenceOptions exact;
  exact.causal_exact = true;
  const double difference = work.forward_flops() - reference_workload("gpt2", exact).forward_flops();
  EXPECT_EQ(difference, seq * attention * (1 - (seq + 1) / (2 * seq)));
}

TEST(Workload, BertClosedForm) {
  const double layers = 24, h = 1024, seq = 384;
  ReferenceOptions options;
  options.seq = seq;
  const auto sums = flops_by_op(reference_workload("bert-large", options));
  EXPECT_EQ(sums.at("attention"), layers * 4 * seq * seq * h);
  EXPECT_EQ(sums.at("linear"), layers * 2 * seq * 12 * h * h + 2 * h * h + 2 * h * 2);
}

TEST(Workload, LstmClosedForm) {
  const Workload work = lstm_lm("lstm-lm", {.layers = 2, .embedding = 128, .hidden = 256, .vocab = 256, .seq = 128});
  EXPECT_EQ(work.forward_flops(), 128 * 2.0 * (4 * 256 * (128 + 256) + 4 * 256 * (256 + 256) + 256 * 256));
}

TEST(Workload, TheFirstConvolutionNeedsNoInputGradient) {
  const Workload work = resnet20();
  EXPECT_EQ(work.wgrad_flops(), work.forward_flops());
  EXPECT_EQ(work.forward_flops() - work.dgrad_flops(), 2.0 * 16 * 3 * 9 * 32 * 32);
}

TEST(Workload, HundredBillion) { EXPECT_NEAR(reference_workload("gpt-100b").parameters(), 100e9, 2e9); }

TEST(Workload, DescribedDecoder) {
  const Workload work = reference_workload("gpt:layers=2,hidden=64,heads=4,vocab=100,seq=16");
  EXPECT_EQ(work.tokens, 16);
  EXPECT_EQ(work.parameters(), 100 * 64 + 16 * 64 + 2 * (12 * 64 * 64 + 13 * 64) + 2 * 64);
}

TEST(Workload, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(reference_workload("resnet51"), Error);
  EXPECT_THROW(reference_workload("gpt:layers=2"), Error);
  EXPECT_THROW(reference_workload("gpt:layers=2,hidden=65,heads=4"), Error);
  EXPECT_THROW(reference_workload("gpt:layers=2,hidden=64,experts=4"), Error);
  EXPECT_THROW(reference_workload("gpt:layers=-2,hidden=64"), Error);
  try {
    reference_workload("resnet51");
  } catch (const Error& e) {
    EXPECT_NE(e.todo().find("resnet50"), std::string::npos) << e.what();
  }
}

TEST(Workload, NamesInTheListAreModels) {
  for (const ReferenceModel& model : reference_models()) {
    const Workload work = reference_workload(model.name);
    EXPECT_EQ(work.model, model.name);
    EXPECT_GT(work.forward_flops(), 0);
  }
}

}  // namespace
}  // namespace hpqf::cost
