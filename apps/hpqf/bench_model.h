// hpqf bench model: whole training steps of a reference model, torch's fp32 against precisions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/hpqf/bench_options.h"

namespace hpqf::app {

struct BenchModelConfig {
  std::string model;
  std::vector<std::string> formats{"int8", "int12", "bf16", "auto"};
  int64_t batch_size = 0;  // 0: the model's default
  BenchOptions common;
};

int bench_model(const BenchModelConfig& config);  // Error before anything is measured

}  // namespace hpqf::app
