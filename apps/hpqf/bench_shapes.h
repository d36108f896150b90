// Which linear layers `hpqf bench gemm` times.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hpqf/engine/problem_shape.h"

namespace hpqf::app {

// x [m, k] through a layer with weight [n, k] to y [m, n]: m rows (tokens), k inputs, n outputs.
struct LinearShape {
  int64_t m = 0, k = 0, n = 0;
  bool operator==(const LinearShape&) const = default;
};
std::string to_string(const LinearShape& shape);  // "2048x512x512"

// "MxKxN". Error when it is not three sizes from 1 to 2^24, or needs more than half of the machine's memory.
LinearShape parse_shape(const std::string& text);

double memory_bytes();  // of this machine

// What the layers of a reference model compute in one forward pass of `batch_size` samples (0: the model's default).
// Error when the model is unknown.
std::map<std::string, engine::ProblemShape> seen_shapes(const std::string& model, int64_t batch_size);

// Those of a reference model, from one forward pass of `batch_size` samples (0: the model's default). Error when the
// model is unknown or has no linear layer.
std::vector<LinearShape> model_shapes(const std::string& model, int64_t batch_size);

}  // namespace hpqf::app
