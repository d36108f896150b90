#include "hpqf/engine/sensitivity/profile.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "hpqf/base/error.h"
#include "hpqf/engine/rounding.h"
#include "hpqf/engine/sensitivity/capture.h"
#include "hpqf/engine/sensitivity/frozen_state.h"
#include "hpqf/engine/sensitivity/labels.h"
#include "hpqf/engine/sensitivity/score_sum.h"
#include "hpqf/engine/sensitivity/terms.h"
#include "hpqf/engine/sensitivity/ties.h"
#include "hpqf/engine/sensitivity/warnings.h"

namespace hpqf::engine::sensitivity {
namespace {

using at::Tensor;
using plan::Operand;

constexpr std::array kMeasured = {Operand::weight, Operand::input};

void check_finite(const Tensor& t, std::string_view what) {
  if (t.defined() && !std::isfinite(t.sum().item<double>()) && !t.isfinite().all().item<bool>())
    throw Error(fmt::format("sensitivity with NaN or infinity in {}", what), "finite losses and gradients",
                "measure on data and weights that give finite numbers; hpqf train names the layer where they begin");
}

struct LayerSum {
  const Layer* layer = nullptr;
  int64_t weights = 0, inputs = 0, macs = 0;
  std::vector<std::array<ScoreSum, kMeasured.size()>> scores;  // by format, then operand
  std::array<bool, kMeasured.size()> measured{};
  std::set<const void*> weights_seen;  // by address: a weight used twice counts once
  bool reached = false;                // the loss depends on it
  StatisticsSum weight, input, gradient;
};

// The sums inside the terms of one batch, over all ops of a layer that have as many terms: a weight used twice makes
// two parts of one error.
using Terms = std::map<int64_t, std::pair<Tensor, Tensor>>;
void add_to(Terms& terms, Tensor sums, Tensor true_sums) {
  auto [it, fresh] = terms.try_emplace(sums.numel(), sums, true_sums);
  if (!fresh) it->second = {it->second.first.add(sums), it->second.second.add(true_sums)};
}

}  // namespace

std::vector<BlockFormat> all_block_formats() {
  std::vector<BlockFormat> all;
  for (const formats::FormatInfo& info : formats::all_formats())
    if (info.format != Format::fp32) all.push_back(formats::default_block(info.format));
  return all;
}

struct Profile::Impl {
  Runtime& runtime;
  ProfileOptions options;
  Capture capture;
  std::map<const Layer*, LayerSum> layers;
  Ties ties;
  int64_t samples = 0, batches = 0, rows = 0;  // rows: labels drawn so far
  double loss_terms = 0;
  bool true_labels = false;

  struct Gradients {
    std::vector<Tensor> drawn, given;  // at each op's output, of losses summed over their terms
    std::vector<int64_t> target;       // the shape that says what a term is
  };

  Gradients differentiate(const Tensor& loss, const Tensor& output, const Tensor& target, int64_t count) {
    Gradients g;
    const auto scores = class_scores(output, target);
    g.target = scores ? target.sizes().vec() : std::vector<int64_t>{count};
    double terms = double(count);
    if (scores) terms = double(target.ge(0).sum().item<int64_t>());
    if (scores && options.sampled_labels) {
      const Tensor labels = sample_labels(*scores, target, options.seed, uint64_t(rows));
      rows += scores->size(0);
      const Tensor drawn = at::cross_entropy_loss(scores->to(at::kFloat), labels, {}, at::Reduction::Sum);
      g.drawn = capture.gradients(drawn, /*keep_graph=*/true);
    } else {
      true_labels = true;
    }
    g.given = capture.gradients(loss, /*keep_graph=*/false);
    for (Tensor& t : g.given)
      if (t.defined()) t = t.mul(terms);  // the loss is a mean
    if (g.drawn.empty()) g.drawn = g.given;
    loss_terms += terms;
    return g;
  }

  void note_first(LayerSum& sum, const CapturedOp& c, int64_t count) {
    const double samples_here = double(std::max<int64_t>(count, 1));
    if (c.op.weight.defined() && sum.weights_seen.insert(c.op.weight.const_data_ptr()).second) {
      sum.weights += c.op.weight.numel();
      sum.weight.add(c.op.weight);
    }
    if (c.op.input.defined()) sum.inputs += int64_t(double(c.op.input.numel()) / samples_here);
    sum.macs += int64_t(c.op.macs / samples_here);
    ties.see(*c.layer, c.op);
  }

  // All formats of one layer in one batch.
  void score(LayerSum& sum, const std::vector<size_t>& ops, const Gradients& g) {
    for (size_t f = 0; f < options.formats.size(); ++f) {
      const BlockFormat& format = options.formats[f];
      std::array<Terms, kMeasured.size()> terms;
      Tensor rounded_of, delta;  // a weight used again keeps its error
      std::set<const void*> added;
      for (size_t i : ops) {
        if (!g.given[i].defined()) continue;
        const CapturedOp& c = capture.ops()[i];
        auto take = [&](size_t operand, const Tensor& change) {
          sum.measured[operand] = true;
          add_to(terms[operand], term_sums(g.drawn[i], change, g.target), term_sums(g.given[i], change, g.target));
        };
        if (c.op.weight_product) {
          if (!rounded_of.defined() || rounded_of.const_data_ptr() != c.op.weight.const_data_ptr()) {
            rounded_of = c.op.weight;
            delta = round(rounded_of, format, c.op.weight_axis, *c.layer, plan::Role::weight).sub(rounded_of);
            if (batches == 0 && added.insert(rounded_of.const_data_ptr()).second)
              sum.scores[f][0].add_error(delta, rounded_of);
          }
          take(0, c.op.weight_product(delta));
        }
        if (c.op.input_error) {
          take(1, c.op.input_error(format));
          if (c.op.input.defined())
            sum.scores[f][1].add_error(
                round(c.op.input, format, c.op.input_axis, *c.layer, plan::Role::input).sub(c.op.input), c.op.input);
        }
      }
      for (size_t operand = 0; operand < terms.size(); ++operand)
        for (const auto& [count, sums] : terms[operand]) sum.scores[f][operand].add_terms(sums.first, sums.second);
    }
  }
};

Profile::Profile(Runtime& runtime, ProfileOptions options)
    : impl_(std::make_unique<Impl>(Impl{runtime, std::move(options)})) {
  if (impl_->options.formats.empty()) impl_->options.formats = all_block_formats();
  for (const BlockFormat& f : impl_->options.formats) {
    formats::check(f);
    if (is_fp32(f)) throw Error("sensitivity to fp32", "formats that round", "leave fp32 out: its error is zero");
  }
  if (impl_->options.samples < 1)
    throw Error(fmt::format("sensitivity on {} samples", impl_->options.samples), "1 or more; 256 give a usable score",
                "raise samples");
  runtime.set_probe(&impl_->capture);
}
Profile::~Profile() { impl_->runtime.set_probe(nullptr); }

bool Profile::enough() const { return impl_->samples >= impl_->options.samples; }

void Profile::add(const Tensor& loss, const Tensor& output, const Tensor& target, int64_t samples) {
  Impl& p = *impl_;
  const Passthrough fp32;
  if (!loss.defined() || loss.numel() != 1)
    throw Error(fmt::format("sensitivity of a loss with {} elements", loss.defined() ? loss.numel() : 0),
                "a tensor with one element", "reduce it: loss.mean()");
  check_finite(loss, "the loss");
  const Impl::Gradients g = p.differentiate(loss.reshape({}), output, target, samples);

  at::NoGradGuard no_grad;
  std::map<const Layer*, std::vector<size_t>> ops;
  for (size_t i = 0; i < p.capture.ops().size(); ++i) ops[p.capture.ops()[i].layer].push_back(i);
  for (auto& [layer, indices] : ops) {
    LayerSum& sum = p.layers[layer];
    sum.layer = layer;
    sum.scores.resize(p.options.formats.size());
    for (size_t i : indices) {
      const CapturedOp& c = p.capture.ops()[i];
      if (p.batches == 0) p.note_first(sum, c, samples);
      if (c.op.input.defined()) sum.input.add(c.op.input);
      for (const Tensor* gradient : {&g.drawn[i], &g.given[i]})
        check_finite(*gradient, fmt::format("the gradient of layer '{}'", layer->name));
      sum.reached |= g.given[i].defined();
      if (g.drawn[i].defined()) sum.gradient.add(g.drawn[i]);
    }
    p.score(sum, indices, g);
  }
  p.capture.clear();
  p.samples += samples;
  ++p.batches;
}

ProfileResult Profile::finish() {
  Impl& p = *impl_;
  p.runtime.set_probe(nullptr);
  if (p.batches == 0)
    throw Error("sensitivity without data", "a loader that gives at least one batch", "check the data set");
  ProfileResult r;
  plan::Sensitivity& s = r.sensitivity;
  s.model = p.runtime.facts().model;
  s.method = "fisher: half the mean square of <g, op(x, dW)> and <g, op(dx, W)>, summed inside a sample or token";
  s.labels = p.true_labels ? "true" : "sampled";
  s.samples = p.samples;
  s.seed = p.options.seed;
  std::vector<std::string> unreached;
  for (const plan::LayerFacts& facts : p.runtime.facts().layers) {
    const Layer* layer = p.runtime.layer(facts.name);
    const auto it = p.layers.find(layer);
    if (it == p.layers.end() || !it->second.reached) {
      if (it != p.layers.end() || p.capture.without_gradient().contains(layer)) unreached.push_back(facts.name);
      continue;
    }
    const LayerSum& sum = it->second;
    plan::LayerSensitivity out{facts.name, facts.kind, sum.weights, sum.inputs, sum.macs, std::nullopt, {}};
    for (size_t operand = 0; operand < kMeasured.size(); ++operand) {
      if (!sum.measured[operand]) continue;
      for (size_t f = 0; f < p.options.formats.size(); ++f)
        out.scores.push_back(sum.scores[f][operand].result(kMeasured[operand], p.options.formats[f], p.loss_terms));
    }
    s.layers.push_back(std::move(out));
    if (sum.weights > 0) r.statistics.push_back({facts.name, plan::Role::weight, sum.weight.result()});
    if (sum.inputs > 0) r.statistics.push_back({facts.name, plan::Role::input, sum.input.result()});
    r.statistics.push_back({facts.name, plan::Role::output_grad, sum.gradient.result()});
  }
  s.ties = p.ties.groups(s);
  r.warnings = warnings_of(s, p.options.sampled_labels, unreached);
  plan::check(s);
  return r;
}

ProfileResult profile(torch::nn::Module& model, const std::function<Tensor(const Tensor&)>& forward,
                      const std::function<Tensor(const Tensor&, const Tensor&)>& loss,
                      const std::function<std::optional<Example>()>& next, const ProfileOptions& options) {
  const auto parameters = model.parameters();
  if (std::none_of(parameters.begin(), parameters.end(), [](const Tensor& p) { return p.requires_grad(); }))
    throw Error("sensitivity of a model without trainable parameters", "parameters that require gradients",
                "call requires_grad_() on them: nothing is written to them");
  const FrozenState frozen(model);
  Runtime runtime(model, PrecisionPlan());
  Profile measured(runtime, options);
  at::AutoGradMode gradients(true);
  while (!measured.enough()) {
    std::optional<Example> batch = next();
    if (!batch) break;
    const Tensor output = forward(batch->data);
    measured.add(loss(output, batch->target), output, batch->target, batch->data.size(0));
  }
  return measured.finish();
}

}  // namespace hpqf::engine::sensitivity
