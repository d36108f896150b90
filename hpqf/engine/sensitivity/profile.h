// How much the loss suffers from each format in each operand of each layer: measured on the model in fp32, in one
// forward and two backward passes over a few hundred samples, for all formats at once.
//
// The score is the Fisher quadratic form of the error the engine would make. With g the gradient of the loss at the
// output of a layer, the gradient of its weight satisfies <g_W, dW> = <g, op(x, dW)>, and that of its input <g_x, dx> =
// <g, op(dx, W)>: no gradient of a single sample has to be formed, one more run of the op for each format is enough.
// Labels are drawn from the model's softmax; the score is then an expected KL divergence in nats.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hpqf/engine/runtime.h"
#include "hpqf/engine/sensitivity/hessian.h"
#include "hpqf/engine/sensitivity/statistics.h"
#include "hpqf/engine/sensitivity/training_score.h"
#include "hpqf/plan/sensitivity.h"

namespace hpqf::engine::sensitivity {

struct ProfileOptions {
  std::vector<BlockFormat> formats;  // empty: all_block_formats()
  int64_t samples = 256;             // whole batches are used, so it may be exceeded
  uint64_t seed = 0;                 // of the drawn labels
  bool sampled_labels = true;        // false: the true ones (the empirical Fisher, which is not calibrated)
};

// Every format but fp32, in its default blocks.
HPQF_API std::vector<BlockFormat> all_block_formats();

struct ProfileResult {
  plan::Sensitivity sensitivity;
  std::vector<LayerStatistics> statistics;  // of weights, inputs and output gradients
  std::vector<std::string> warnings;
  std::optional<HessianResult> hessian;  // of the whole model, where it was asked for
  std::vector<TrainingScore> training;   // likewise
};

// The measurement, batch by batch: run the forward and the loss of a batch while it lives, then call add(). Memory is
// that of one batch: its activations and their gradients. The runtime must belong to the model; its plan is not used.
class HPQF_API Profile {
 public:
  Profile(Runtime& runtime, ProfileOptions options);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // loss: mean over the samples (tokens) of the batch. output and target: what labels are drawn from; where they are
  // not class scores and integers the true loss serves instead, and a warning says so. samples: of this batch. Error:
  // the loss is no scalar or not finite, a gradient is not finite.
  void add(const at::Tensor& loss, const at::Tensor& output, const at::Tensor& target, int64_t samples);
  bool enough() const;
  ProfileResult finish();  // Error when nothing was added

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The whole of it for a C++ model: eval mode, and everything put back afterwards (modes, buffers, torch's generator, no
// gradient written). `next` gives nothing at the end of the data.
HPQF_API ProfileResult profile(torch::nn::Module& model, const std::function<at::Tensor(const at::Tensor&)>& forward,
                               const std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>& loss,
                               const std::function<std::optional<Example>()>& next, const ProfileOptions& options = {});

}  // namespace hpqf::engine::sensitivity
