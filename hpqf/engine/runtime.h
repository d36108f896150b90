// A plan attached to a model: every op of its layers runs as planned, forward and backward, while the Runtime lives.
#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/engine/layer.h"
#include "hpqf/engine/problem_shape.h"
#include "hpqf/observe/audit.h"
#include "hpqf/plan/plan.h"
#include "hpqf/plan/range.h"

namespace torch::nn {
class Module;
}

namespace hpqf::engine {

class Probe;

struct LayerParameter {
  std::string layer;  // qualified module name
  std::string name;   // parameter name inside the module
  at::Tensor tensor;
};

// What the engine must know of a model: its modules and whose parameters are whose.
struct ModelDescription {
  plan::ModelFacts facts;
  std::vector<LayerParameter> parameters;
};
HPQF_API ModelDescription describe(const torch::nn::Module& model);

struct RuntimeOptions {
  Strict strict = Strict::off;
  std::shared_ptr<observe::EventSink> events;  // e.g. a shared observe::Audit
  plan::RangeRules range;                      // compensation for fp16 and unscaled fp8 that run emulated
  std::string force_implementation;            // "emulated", "torch.bf16", ...: for tests; "" chooses
};

// RAII. C++ models: the constructing thread is inside the scope until destruction; other threads enter with Scope.
// Python models: the scope is opened by push_layer in the patched forward. Backward follows the plan on any thread,
// also after the Runtime is gone. Several Runtimes may live at once, on different models.
class HPQF_API Runtime {
 public:
  Runtime(const torch::nn::Module& model, PrecisionPlan plan, RuntimeOptions options = {});
  // For front ends that open the scope themselves (Python): nothing is switched on.
  Runtime(ModelDescription model, PrecisionPlan plan, RuntimeOptions options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const PrecisionPlan& plan() const;
  const plan::ModelFacts& facts() const;
  void apply(PrecisionPlan plan);                       // between steps only; Error when it does not fit the model
  void rescan(std::vector<LayerParameter> parameters);  // after module.to(dtype): parameters live elsewhere now
  Layer* layer(std::string_view name);                  // Error with the nearest names
  // At a step boundary, with range compensation: the exponents of the next step, from the casts since the last call.
  // Python models do it on the way into the model, too.
  void follow_ranges();
  const plan::RangeState& ranges() const;
  void set_ranges(plan::RangeState ranges);  // of a run that is resumed
  bool note_ranges(bool on);                 // off for an evaluation; returns what it was
  // What the layers computed since the last call, while the plan was unsettled (auto_plan.h).
  std::map<std::string, ProblemShape> take_shapes();
  // While set, ops run in fp32 whatever the plan says, and the probe sees them (probe.h). null ends it.
  void set_probe(Probe* probe);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Thread-local switch: ops on this thread are intercepted while it lives.
class HPQF_API Scope {
 public:
  explicit Scope(bool on = true);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  bool previous_;
};

// Everything inside runs as torch alone would run it (fp32 curvature, teachers, probes).
class HPQF_API Passthrough {
 public:
  Passthrough();
  ~Passthrough();
  Passthrough(const Passthrough&) = delete;
  Passthrough& operator=(const Passthrough&) = delete;
};

// The exact layer stack (thread local). Opens the scope; pop restores what was before. Front ends call these around a
// module's forward; also for C++ users with tied weights or own checkpointing (a recomputation inside backward).
HPQF_API void push_layer(Layer* layer);
HPQF_API void pop_layer() noexcept;

class LayerScope {  // RAII form
 public:
  explicit LayerScope(Layer* layer) { push_layer(layer); }
  ~LayerScope() { pop_layer(); }
  LayerScope(const LayerScope&) = delete;
  LayerScope& operator=(const LayerScope&) = delete;
};

}  // namespace hpqf::engine

namespace hpqf {
using engine::Runtime;
using engine::RuntimeOptions;
}  // namespace hpqf
