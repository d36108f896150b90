// Any range of {data, target} as a Loader: torch::data loaders, vectors of pairs, ...
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "hpqf/base/error.h"
#include "hpqf/train/loader.h"

namespace hpqf::train {

template <class Element>
Batch to_batch(Element&& e) {
  if constexpr (requires { Batch{e.data, e.target}; }) {
    return {e.data, e.target};
  } else {
    static_assert(
        requires {
          Batch{std::get<0>(e), std::get<1>(e)};
        },
        "batches must be {data, target}: for torch::data sets add .map(torch::data::transforms::Stack<>())");
    return {std::get<0>(e), std::get<1>(e)};
  }
}

// Iterates the range again for each epoch. A resume skips the batches already seen, so it is exact when the range gives
// the same order again, or draws its order from torch's default generator when begin() is called (torch::data's
// RandomSampler). `range` must outlive the loader.
template <class Range>
class RangeLoader : public Loader {
 public:
  explicit RangeLoader(Range& range) : range_(range) {}
  void begin_epoch(int64_t epoch) override {
    it_.emplace(range_.begin());
    epoch_ = epoch;
    batch_ = 0;
  }
  std::optional<Batch> next() override {
    if (!it_) begin_epoch(epoch_);
    if (*it_ == range_.end()) return std::nullopt;
    Batch batch = to_batch(**it_);
    ++*it_;
    ++batch_;
    return batch;
  }
  int64_t batches() const override {
    if constexpr (requires { range_.size(); }) return static_cast<int64_t>(range_.size());
    return -1;
  }
  LoaderState state() const override { return {.epoch = epoch_, .batch = batch_}; }
  void restore(const LoaderState& state) override {
    begin_epoch(state.epoch);
    while (batch_ < state.batch) {
      if (!next()) {
        throw Error("to resume at batch " + std::to_string(state.batch) + " of an epoch",
                    "this loader ends after " + std::to_string(batch_) + " batches",
                    "resume with the data and batch size of the run that wrote the checkpoint");
      }
    }
  }
  bool draws_from_torch() const override { return true; }

 private:
  Range& range_;
  std::optional<decltype(std::declval<Range&>().begin())> it_;
  int64_t epoch_ = 0, batch_ = 0;
};

}  // namespace hpqf::train
