// What a layer was seen to compute: enough to time it again.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hpqf::engine {

struct ProblemShape {
  std::string op;  // "linear", "conv", "lstm", "gru", "rnn_tanh", "rnn_relu"
  // linear: {rows, in}, {out, in}; conv: sizes of a 2-d input and its weight; recurrent: {steps, sequences, inputs},
  // {layers, hidden, directions, gates}
  std::vector<int64_t> a, b;
  std::vector<int64_t> geometry;  // conv: stride, padding and dilation as h, w each, then groups
  bool bias = false;
  double flops = 0;  // of the forward pass
  bool empty() const { return op.empty(); }
  bool operator==(const ProblemShape&) const = default;
};

// The largest problem of each layer while a plan waits to be settled.
class ShapeLog {
 public:
  void record(const std::string& layer, ProblemShape shape) {
    std::lock_guard lock(mutex_);
    ProblemShape& seen = shapes_[layer];
    if (seen.empty() || seen.a.front() < shape.a.front()) seen = std::move(shape);
  }
  std::map<std::string, ProblemShape> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(shapes_, {});
  }

 private:
  std::mutex mutex_;
  std::map<std::string, ProblemShape> shapes_;
};

}  // namespace hpqf::engine
