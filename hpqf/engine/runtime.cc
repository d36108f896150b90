#include "hpqf/engine/runtime.h"

#include <fmt/format.h>
#include <fmt/ranges.h>  // join

#include <algorithm>

#include "hpqf/base/error.h"
#include "hpqf/base/text.h"
#include "hpqf/engine/auto_plan.h"
#include "hpqf/engine/identity.h"
#include "hpqf/engine/integer_products.h"
#include "hpqf/engine/key.h"
#include "hpqf/engine/range.h"
#include "hpqf/engine/scope.h"

namespace hpqf::engine {

struct Runtime::Impl {
  std::shared_ptr<RuntimeState> state = std::make_shared<RuntimeState>();
  PrecisionPlan plan;
  plan::RangeRules range_rules;
  plan::RangeState ranges;
  std::optional<Scope> scope;  // C++ models: open on the constructing thread

  Layer* find(std::string_view name) {
    for (auto& layer : state->layers)
      if (layer.name == name) return &layer;
    return nullptr;
  }

  void set_plan(PrecisionPlan next) {
    next.check(state->facts);
    for (auto& layer : state->layers) {
      LayerPrecision precision = next.at(layer.name, layer.kind);
      const LayerPrecision* now = layer.current.load(std::memory_order_relaxed);
      if (now && *now == precision) continue;
      layer.current.store(&state->precisions.emplace_back(std::move(precision)), std::memory_order_release);
      for (const plan::Role role : RangeSites::kRoles) layer.ranges.at(role).exponent = RangeSite::kUnknown;
    }
    plan = std::move(next);
    state->log_shapes = unsettled(plan);
    state->own_kernels = runs_own_kernels();
  }

  bool runs_own_kernels() const {
    return std::any_of(state->layers.begin(), state->layers.end(),
                       [&](const Layer& layer) { return integer_gemm_serves(*state, layer.precision().weight); });
  }

  void register_all(const std::vector<LayerParameter>& parameters) {
    std::vector<std::pair<at::Tensor, Layer*>> owned;
    for (const auto& p : parameters)
      if (Layer* layer = find(p.layer)) owned.emplace_back(p.tensor, layer);
    register_parameters(owned);
  }

  Impl(ModelDescription model, PrecisionPlan p, RuntimeOptions options) {
    install();
    plan::check(options.range);
    range_rules = options.range;
    state->compensate_range = options.range.enabled;
    state->facts = std::move(model.facts);
    state->events = std::move(options.events);
    state->strict = options.strict;
    state->force = std::move(options.force_implementation);
    if (state->facts.layers.empty() || !state->facts.layers.front().name.empty())
      state->facts.layers.insert(state->facts.layers.begin(), {"", state->facts.model, plan::LayerKind::other, 0});
    for (const auto& facts : state->facts.layers) {
      Layer& layer = state->layers.emplace_back();
      layer.name = facts.name, layer.type = facts.type, layer.kind = facts.kind, layer.runtime = state.get();
    }
    set_plan(std::move(p));
    register_all(model.parameters);
  }
  ~Impl() {
    scope.reset();
    close_functional(state.get());
    unregister(state.get());
  }
};

Runtime::Runtime(ModelDescription model, PrecisionPlan plan, RuntimeOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(plan), std::move(options))) {}

Runtime::Runtime(const torch::nn::Module& model, PrecisionPlan plan, RuntimeOptions options)
    : Runtime(describe(model), std::move(plan), std::move(options)) {
  open_functional(&impl_->state->layers.front());
  impl_->scope.emplace(true);
}

Runtime::~Runtime() = default;

const PrecisionPlan& Runtime::plan() const { return impl_->plan; }
const plan::ModelFacts& Runtime::facts() const { return impl_->state->facts; }
void Runtime::apply(PrecisionPlan plan) { impl_->set_plan(std::move(plan)); }

void Runtime::follow_ranges() {
  if (!impl_->range_rules.enabled) return;
  impl_->ranges = plan::follow_ranges(std::move(impl_->ranges), take_ranges(*impl_->state), impl_->range_rules);
  engine::set_ranges(*impl_->state, impl_->ranges);
}
const plan::RangeState& Runtime::ranges() const { return impl_->ranges; }
bool Runtime::note_ranges(bool on) { return impl_->state->note_ranges.exchange(on); }
void Runtime::set_ranges(plan::RangeState ranges) {
  take_ranges(*impl_->state);  // casts of before belong to another run
  impl_->ranges = std::move(ranges);
  engine::set_ranges(*impl_->state, impl_->ranges);
}

std::map<std::string, ProblemShape> Runtime::take_shapes() { return impl_->state->shapes.take(); }

void Runtime::set_probe(Probe* probe) { impl_->state->probe = probe; }

void Runtime::rescan(std::vector<LayerParameter> parameters) {
  unregister(impl_->state.get());
  impl_->register_all(parameters);
}

Layer* Runtime::layer(std::string_view name) {
  if (Layer* layer = impl_->find(name)) return layer;
  std::vector<std::string> names;
  for (const auto& layer : impl_->state->layers) names.push_back(layer.name);
  throw Error(fmt::format("layer '{}' of {}", name, facts().model),
              fmt::format("a qualified module name; nearest: {}", fmt::join(base::nearest(names, name, 3), ", ")),
              "see the names with named_modules() or `hpqf plan show`");
}

}  // namespace hpqf::engine
