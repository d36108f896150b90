#include "hpqf/train/loader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hpqf/base/error.h"
#include "hpqf/base/random.h"

namespace hpqf::train {
namespace {

// The check looks at this many samples at a time, so that its boolean copies stay small beside the data.
constexpr int64_t kCheckedAtOnce = 1024;

void check_finite(const at::Tensor& t, const char* what) {
  if (!at::isFloatingType(t.scalar_type())) return;
  for (int64_t first = 0; first < t.size(0); first += kCheckedAtOnce) {
    const at::Tensor part = t.narrow(0, first, std::min(kCheckedAtOnce, t.size(0) - first));
    const at::Tensor finite = at::isfinite(part);
    if (finite.all().item<bool>()) continue;
    const at::Tensor good_rows = finite.reshape({part.size(0), -1}).all(1);
    const int64_t sample = first + good_rows.logical_not().nonzero()[0][0].item<int64_t>();
    throw Error(fmt::format("{} with NaN or infinity, first in sample {}", what, sample), "finite values",
                "clean or leave out this sample; NaN in the data makes every gradient NaN");
  }
}

void check_classes(const at::Tensor& target, int64_t n_classes, int64_t ignore_index) {
  if (n_classes <= 0) return;
  if (!at::isIntegralType(target.scalar_type(), false)) {
    throw Error(fmt::format("class targets of type {}", c10::toString(target.scalar_type())), "an integer type",
                "convert the targets to int64, or set n_classes to 0");
  }
  const at::Tensor wide = target.to(at::kLong);
  const at::Tensor bad = (wide.lt(0).logical_or(wide.ge(n_classes))).logical_and(wide.ne(ignore_index));
  if (!bad.any().item<bool>()) return;
  const at::Tensor where = bad.nonzero()[0];
  const int64_t sample = target.dim() > 0 ? where[0].item<int64_t>() : 0;
  throw Error(fmt::format("target {} in sample {}", wide.masked_select(bad)[0].item<int64_t>(), sample),
              fmt::format("classes 0 to {}, and {} to ignore", n_classes - 1, ignore_index),
              "correct the labels, or n_classes");
}

at::Tensor permutation(int64_t samples, uint64_t seed, int64_t epoch) {
  at::Tensor order = at::empty({samples}, at::kLong);
  int64_t* p = order.data_ptr<int64_t>();
  for (int64_t i = 0; i < samples; ++i) p[i] = i;
  for (int64_t i = samples - 1; i > 0; --i) {
    // 64 random bits scaled to [0, i]: the bias is at most (i + 1) / 2^64.
    const auto block = base::random_block(seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(i));
    const uint64_t bits = uint64_t{block[0]} << 32 | block[1];
    const auto j = static_cast<int64_t>(static_cast<unsigned __int128>(bits) * static_cast<uint64_t>(i + 1) >> 64);
    std::swap(p[i], p[j]);
  }
  return order;
}

}  // namespace

TensorLoader::TensorLoader(at::Tensor data, at::Tensor target, TensorLoaderOptions options)
    : data_(std::move(data)), target_(std::move(target)), options_(std::move(options)) {
  if (!data_.defined() || data_.dim() == 0 || data_.size(0) == 0) {
    throw Error("a loader without samples", "data of shape [samples, ...] with at least one sample",
                "check the path and the filter of the data set");
  }
  if (target_.defined() && (target_.dim() == 0 || target_.size(0) != data_.size(0))) {
    throw Error(fmt::format("{} samples with {} targets", data_.size(0), target_.dim() ? target_.size(0) : 1),
                "one target for each sample", "give data and target the same first dimension");
  }
  if (options_.batch_size < 1) {
    throw Error(fmt::format("batch size {}", options_.batch_size), "1 or more", "set batch_size");
  }
  if (options_.drop_last && options_.batch_size > data_.size(0)) {
    throw Error(
        fmt::format("batches of {} from {} samples, without the incomplete one", options_.batch_size, data_.size(0)),
        "at least one batch an epoch", "lower batch_size, or leave drop_last off");
  }
  check_finite(data_, "data");
  if (target_.defined()) {
    check_finite(target_, "targets");
    check_classes(target_, options_.n_classes, options_.ignore_index);
  }
  begin_epoch(0);
}

void TensorLoader::begin_epoch(int64_t epoch) {
  if (options_.shuffle && (!order_.defined() || epoch != epoch_)) {
    order_ = permutation(data_.size(0), options_.seed, epoch);
  }
  epoch_ = epoch;
  batch_ = 0;
}

std::optional<Batch> TensorLoader::next() {
  if (batch_ >= batches()) return std::nullopt;
  const int64_t first = batch_ * options_.batch_size;
  const int64_t count = std::min(options_.batch_size, data_.size(0) - first);
  ++batch_;
  const auto take = [&](const at::Tensor& t) {
    if (!t.defined()) return t;
    if (!options_.shuffle) return t.narrow(0, first, count);
    return t.index_select(0, order_.narrow(0, first, count).to(t.device()));
  };
  Batch batch{take(data_), take(target_)};
  return options_.transform ? options_.transform(std::move(batch)) : batch;
}

int64_t TensorLoader::batches() const {
  const int64_t whole = data_.size(0) / options_.batch_size;
  return whole + (!options_.drop_last && data_.size(0) % options_.batch_size != 0);
}

LoaderState TensorLoader::state() const {
  return {.epoch = epoch_,
          .batch = batch_,
          .samples = data_.size(0),
          .batch_size = options_.batch_size,
          .seed = options_.seed,
          .shuffle = options_.shuffle,
          .drop_last = options_.drop_last};
}

void TensorLoader::restore(const LoaderState& state) {
  const auto text = [](const LoaderState& s) {
    return fmt::format("{} samples in batches of {}, {}, seed {}{}", s.samples, s.batch_size,
                       s.shuffle ? "shuffled" : "in order", s.seed,
                       s.drop_last ? ", last incomplete batch left out" : "");
  };
  LoaderState same_data = state;
  same_data.epoch = epoch_;
  same_data.batch = batch_;
  if (!(same_data == this->state()) || state.epoch < 0 || state.batch < 0 || state.batch > batches()) {
    throw Error(fmt::format("to resume at epoch {}, batch {} of {}", state.epoch, state.batch, text(state)),
                text(this->state()), "resume with the data, batch size and seed of the run that wrote the checkpoint");
  }
  begin_epoch(state.epoch);
  batch_ = state.batch;
}

}  // namespace hpqf::train
