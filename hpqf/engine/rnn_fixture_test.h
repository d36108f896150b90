// What the tests of recurrent layers share: a model in numbers, torch's operator and a step-by-step oracle on it.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hpqf/engine/rnn.h"

namespace hpqf::engine::testing {

struct Log : observe::EventSink {
  void on_op(const observe::OpEvent& e) override {
    std::lock_guard lock(mutex);
    ops.push_back(e);
  }
  void on_cast(const observe::CastEvent& e) override {
    std::lock_guard lock(mutex);
    casts.push_back(e);
  }
  std::mutex mutex;
  std::vector<observe::OpEvent> ops;
  std::vector<observe::CastEvent> casts;
};

// One layer under one precision, without a Runtime.
struct OneLayer {
  explicit OneLayer(LayerPrecision precision) : state(std::make_shared<RuntimeState>()), log(std::make_shared<Log>()) {
    state->events = log;
    state->precisions.push_back(std::move(precision));
    auto& layer = state->layers.emplace_back();
    layer.name = "rnn";
    layer.runtime = state.get();
    layer.current = &state->precisions.back();
  }
  LayerRef get() { return ref(&state->layers[0]); }
  std::shared_ptr<RuntimeState> state;
  std::shared_ptr<Log> log;
};

struct Shape {
  Cell cell = Cell::lstm;
  int64_t steps = 6, batch = 4, inputs = 5, hidden = 13, layers = 1;
  bool bidirectional = false, batch_first = false, biases = true;
  std::vector<int64_t> batch_sizes;  // packed when not empty
  double dropout = 0;

  int64_t directions() const { return bidirectional ? 2 : 1; }
};

inline std::string to_string(const Shape& s) {
  static constexpr const char* names[] = {"lstm", "gru", "rnn_tanh", "rnn_relu"};
  return std::string(names[int(s.cell)]) + " T" + std::to_string(s.steps) + " B" + std::to_string(s.batch) +
         " layers " + std::to_string(s.layers) + (s.bidirectional ? " bidirectional" : "") +
         (s.batch_first ? " batch_first" : "") + (s.biases ? "" : " no biases") +
         (s.batch_sizes.empty() ? "" : " packed");
}

struct Numbers {
  at::Tensor input;
  std::vector<at::Tensor> state, params;
  std::optional<at::Tensor> batch_sizes;
};
Numbers numbers(const Shape& shape, uint64_t seed = 1);  // all floating tensors are leaves that require gradients

RnnCall call_of(const Shape& shape, const Numbers& n);

struct Outcome {
  std::vector<at::Tensor> outputs;    // output, h_n, c_n of an lstm
  std::vector<at::Tensor> gradients;  // of input, state, params, under a fixed random weighting of all outputs
};
using Forward = std::vector<at::Tensor> (*)(const Shape&, const Numbers&, const LayerRef&);
Outcome outcome(Forward forward, const Shape& shape, const Numbers& n, const LayerRef& layer);

std::vector<at::Tensor> ours(const Shape& shape, const Numbers& n, const LayerRef& layer);
std::vector<at::Tensor> torch_op(const Shape& shape, const Numbers& n, const LayerRef& layer);
// Plain tensor ops under autograd, one sequence and one step after another, roundings written out with casts.
// Formats: fp32, bf16, fp16.
std::vector<at::Tensor> oracle(const Shape& shape, const Numbers& n, const LayerRef& layer);

// The largest distance of any output or gradient, relative to that tensor's largest value.
double distance(const Outcome& a, const Outcome& b);

}  // namespace hpqf::engine::testing
