// Batches in an order that can be resumed exactly: the position is (epoch, batch), never the state of a generator.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "hpqf/base/export.h"

namespace hpqf::train {

struct Batch {
  at::Tensor data;    // [B, ...]
  at::Tensor target;  // [B, ...]; may be undefined when the loss needs none
  int64_t size() const { return data.defined() && data.dim() > 0 ? data.size(0) : 1; }
};

// Where a loader stands, and what that position means. All of it goes into checkpoints.
struct LoaderState {
  int64_t epoch = 0;  // from 0
  int64_t batch = 0;  // batches of this epoch already handed out
  // What the order depends on; 0 when the loader does not know.
  int64_t samples = 0, batch_size = 0;
  uint64_t seed = 0;
  bool shuffle = false, drop_last = false;
  bool operator==(const LoaderState&) const = default;
};

class HPQF_API Loader {
 public:
  virtual ~Loader() = default;
  virtual void begin_epoch(int64_t epoch) = 0;  // the next batch is the first of `epoch`
  virtual std::optional<Batch> next() = 0;      // nothing at the end of the epoch
  virtual int64_t batches() const = 0;          // per epoch; -1 when unknown
  virtual LoaderState state() const = 0;
  // The next batch is what it was when `state` was taken. Error when the loader would give other batches.
  virtual void restore(const LoaderState& state) = 0;
  // The order comes from torch's default generator: a resume puts the generator back to where the epoch began first.
  virtual bool draws_from_torch() const { return false; }
};

struct TensorLoaderOptions {
  int64_t batch_size = 32;
  bool shuffle = true;
  uint64_t seed = 0;
  bool drop_last = false;       // leave out a last batch of fewer than batch_size samples
  int64_t n_classes = 0;        // > 0: integer targets must lie in [0, n_classes), checked when the loader is made
  int64_t ignore_index = -100;  // ... except this value, which losses leave out
  // Applied to each batch as it is handed out: uint8 -> normalised float, windows -> (input, target), ...
  std::function<Batch(Batch)> transform;
};

// Samples along the first dimension of `data` (and of `target`, if defined). The permutation of an epoch is a
// Fisher-Yates shuffle drawn from Philox(seed, epoch): the same on every machine, and independent of torch's generator.
// Error: empty data, other lengths, NaN or infinity in floating data (names the first sample), targets out of range.
// Memory: one batch, and 8 bytes a sample for the permutation; without shuffle batches are views of `data`.
class HPQF_API TensorLoader : public Loader {
 public:
  TensorLoader(at::Tensor data, at::Tensor target, TensorLoaderOptions options = {});
  void begin_epoch(int64_t epoch) override;
  std::optional<Batch> next() override;
  int64_t batches() const override;
  LoaderState state() const override;
  void restore(const LoaderState& state) override;

 private:
  at::Tensor data_, target_, order_;  // order_: int64 [samples], defined when shuffling
  TensorLoaderOptions options_;
  int64_t epoch_ = 0, batch_ = 0;
};

}  // namespace hpqf::train

namespace hpqf {
using train::TensorLoader;
using train::TensorLoaderOptions;
}  // namespace hpqf
