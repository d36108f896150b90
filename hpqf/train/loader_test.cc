#include "hpqf/train/loader.h"

#include <cmath>
#include <limits>
#include <set>

#include "hpqf/train/fixtures_test.h"
#include "hpqf/train/range_loader.h"

namespace hpqf::train {
namespace {

TensorLoader counting(int64_t samples, TensorLoaderOptions options = {}) {
  return TensorLoader(torch::arange(samples, at::kFloat), torch::arange(samples), options);
}

std::vector<int64_t> epoch_of(Loader& loader, int64_t epoch) {
  std::vector<int64_t> seen;
  loader.begin_epoch(epoch);
  while (auto batch = loader.next()) {
    EXPECT_TRUE(batch->data.to(at::kLong).equal(batch->target));
    for (int64_t i = 0; i < batch->size(); ++i) seen.push_back(batch->target[i].item<int64_t>());
  }
  return seen;
}

TEST(TensorLoader, EachSampleOnceInAnOrderOfSeedAndEpoch) {
  TensorLoader loader = counting(101, {.batch_size = 10, .seed = 3});
  const auto first = epoch_of(loader, 0), second = epoch_of(loader, 1);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 101);
  EXPECT_EQ(std::set(second.begin(), second.end()).size(), 101);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, epoch_of(loader, 0));
  TensorLoader other = counting(101, {.batch_size = 10, .seed = 4});
  EXPECT_NE(first, epoch_of(other, 0));
  EXPECT_EQ(loader.batches(), 11);
}

TEST(TensorLoader, PermutationsAreUniform) {
  // 4 samples, 24 orders, 4800 epochs: 200 expected each; chi-square with 23 degrees of freedom is under 49.7 in 99.9
  // %.
  TensorLoader loader = counting(4, {.batch_size = 4, .seed = 1});
  std::map<std::vector<int64_t>, int> orders;
  for (int64_t epoch = 0; epoch < 4800; ++epoch) ++orders[epoch_of(loader, epoch)];
  double chi = 0;
  for (const auto& [order, count] : orders) chi += (count - 200.0) * (count - 200.0) / 200.0;
  EXPECT_EQ(orders.size(), 24);
  EXPECT_LT(chi, 49.7);
}

TEST(TensorLoader, OrderIsIndependentOfTorchsGenerator) {
  TensorLoader loader = counting(20, {.batch_size = 4});
  const auto before = epoch_of(loader, 2);
  torch::manual_seed(99);
  torch::rand({5});
  EXPECT_EQ(before, epoch_of(loader, 2));
}

TEST(TensorLoader, ResumesAtEveryPosition) {
  for (const bool shuffle : {true, false}) {
    TensorLoader loader = counting(7, {.batch_size = 3, .shuffle = shuffle});
    const auto whole = epoch_of(loader, 5);
    for (int64_t batch = 0; batch <= 3; ++batch) {
      loader.begin_epoch(5);
      for (int64_t i = 0; i < batch; ++i) loader.next();
      TensorLoader fresh = counting(7, {.batch_size = 3, .shuffle = shuffle});
      fresh.restore(loader.state());
      std::vector<int64_t> rest;
      while (auto b = fresh.next()) {
        for (int64_t i = 0; i < b->size(); ++i) rest.push_back(b->target[i].item<int64_t>());
      }
      EXPECT_EQ(rest, std::vector<int64_t>(whole.begin() + std::min<int64_t>(7, 3 * batch), whole.end()));
    }
  }
}

TEST(TensorLoader, PartialBatchesOneSampleAndDropLast) {
  TensorLoader keeps = counting(7, {.batch_size = 3}), drops = counting(7, {.batch_size = 3, .drop_last = true});
  EXPECT_EQ(epoch_of(keeps, 0).size(), 7);
  EXPECT_EQ(epoch_of(drops, 0).size(), 6);
  EXPECT_EQ(drops.batches(), 2);
  TensorLoader one = counting(1, {.batch_size = 64});
  EXPECT_EQ(epoch_of(one, 0), std::vector<int64_t>{0});
}

TEST(TensorLoader, TransformRunsOnEachBatch) {
  TensorLoader loader(torch::full({5, 2}, 255, at::kByte), {}, {.batch_size = 2, .transform = [](Batch b) {
                                                                  return Batch{b.data.to(at::kFloat) / 255, b.data};
                                                                }});
  while (auto batch = loader.next()) EXPECT_TRUE(batch->data.eq(1).all().item<bool>());
}

TEST(TensorLoader, BadDataIsRefusedAtTheDoor) {
  const at::Tensor x = torch::zeros({3000, 2}), y = torch::zeros({3000}, at::kLong);
  at::Tensor nan = x.clone(), labels = y.clone();
  nan[2048][1] = std::numeric_limits<float>::quiet_NaN();
  labels[17] = 10;
  EXPECT_ERROR(TensorLoader(nan, y), "sample 2048");
  EXPECT_ERROR(TensorLoader(x, labels, {.n_classes = 10}), "target 10 in sample 17");
  labels[17] = -1;
  EXPECT_ERROR(TensorLoader(x, labels, {.n_classes = 10}), "target -1 in sample 17");
  labels[17] = -100;
  EXPECT_NO_THROW(TensorLoader(x, labels, {.n_classes = 10}));
  EXPECT_ERROR(TensorLoader(x, y.to(at::kFloat), {.n_classes = 10}), "integer");
  EXPECT_ERROR(TensorLoader(x, y.narrow(0, 0, 10)), "3000 samples with 10 targets");
  EXPECT_ERROR(TensorLoader(torch::zeros({0, 2}), {}), "without samples");
  EXPECT_ERROR(TensorLoader(x, y, {.batch_size = 0}), "batch size 0");
}

TEST(TensorLoader, RestoreRefusesAnotherOrder) {
  TensorLoader loader = counting(20, {.batch_size = 4}), other = counting(20, {.batch_size = 5});
  EXPECT_ERROR(other.restore(loader.state()), "batches of 4");
  TensorLoader reseeded = counting(20, {.batch_size = 4, .seed = 1});
  EXPECT_ERROR(reseeded.restore(loader.state()), "seed 0");
  LoaderState beyond = loader.state();
  beyond.batch = 6;
  EXPECT_ERROR(loader.restore(beyond), "batch 6");
}

TEST(RangeLoader, AnyRangeOfPairs) {
  std::vector<std::pair<at::Tensor, at::Tensor>> range;
  for (int i = 0; i < 4; ++i) range.emplace_back(torch::full({1}, float(i)), torch::full({1}, i, at::kLong));
  RangeLoader loader(range);
  EXPECT_EQ(epoch_of(loader, 0), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(loader.batches(), 4);
  loader.restore({.epoch = 3, .batch = 2});
  EXPECT_EQ(loader.next()->target.item<int64_t>(), 2);
  EXPECT_EQ(loader.state().epoch, 3);
  EXPECT_ERROR(loader.restore({.epoch = 0, .batch = 5}), "ends after 4");
}

}  // namespace
}  // namespace hpqf::train
