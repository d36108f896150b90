// Looks at weights and gradients every so many steps: statistics per layer, an answer to "does it explode or vanish",
// and one line a layer in gradients.jsonl.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/observe/monitor/bounded_lines.h"
#include "hpqf/observe/monitor/gradient_detector.h"
#include "hpqf/observe/monitor/gradient_observation.h"
#include "hpqf/plan/plan.h"

namespace hpqf::train {

struct GradientMonitorOptions {
  int64_t every = 50;        // steps between two looks
  bool quantisation = true;  // round weights and gradients as planned and report the noise
  std::string path;          // gradients.jsonl; "": nothing is written
  int64_t max_bytes = int64_t{64} << 20;
  observe::DetectorOptions detector;
};

// Order within a step that is due: output_gradient() during backward (optional), gradients() after unscaling and before
// clipping, updated() after the optimizer. Reads tensors, changes none. Passes over the parameters' memory in a step
// that is due: gradients 1 for the sums and, for a narrow format, 1 read and 1 write to round and 2 reads to compare;
// the same for the weights; 1 read and 1 write for a copy of the weights and 2 reads to see what the step changed. 14
// at most: 0.28 a step with every = 50, while AdamW alone makes 7. Memory: a copy of the weights during such a
// step. What fails becomes a note, once; nothing is thrown after construction. Not thread safe.
class HPQF_API GradientMonitor {
 public:
  explicit GradientMonitor(GradientMonitorOptions options = {});  // Error for impossible options

  bool due(int64_t step) const { return step % options_.every == 0; }
  void resume_after(int64_t step);

  // `plan` may be null: everything is then measured against fp32. Kinds of layers come from `facts`.
  void gradients(int64_t step, std::span<const engine::LayerParameter> parameters, const PrecisionPlan* plan,
                 const plan::ModelFacts& facts);
  // The gradient at the output (or, for `input`, at the input) of a layer, as backward sees it. `time_axis`: norms per
  // time step of a recurrent layer.
  void output_gradient(int64_t step, const std::string& layer, const at::Tensor& gradient, const BlockFormat& format,
                       bool input = false, std::optional<int64_t> time_axis = std::nullopt);
  // Completes the look: update ratios, detection, the file. Nothing without gradients() before it.
  void updated(std::span<const engine::LayerParameter> parameters);

  const std::vector<observe::GradientObservation>& latest() const { return latest_; }
  const std::vector<observe::Finding>& findings() const { return findings_; }  // of the latest look
  const observe::DetectorState& state() const { return state_; }
  void set_state(observe::DetectorState state) { state_ = std::move(state); }
  std::vector<std::string> take_notes();  // what failed since the last call, each once: training goes on
  const GradientMonitorOptions& options() const { return options_; }

 private:
  void look(int64_t step, std::span<const engine::LayerParameter> parameters, const PrecisionPlan* plan,
            const plan::ModelFacts& facts);
  void complete(std::span<const engine::LayerParameter> parameters);
  template <class Work>
  void guarded(Work&& work);

  GradientMonitorOptions options_;
  std::optional<observe::BoundedLines> lines_;
  std::vector<observe::GradientObservation> pending_, latest_;
  std::vector<observe::Finding> findings_;
  std::unordered_map<const void*, at::Tensor> before_;  // copies of the weights, by parameter
  observe::DetectorState state_;
  std::vector<std::string> notes_;
  std::set<std::string> said_;
  bool open_ = false;
};

}  // namespace hpqf::train

namespace hpqf {
using train::GradientMonitor;
}  // namespace hpqf
