// Range and outliers of a layer's operands, over everything a measurement saw.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/role.h"

namespace hpqf::engine::sensitivity {

struct Statistics {
  int64_t elements = 0;
  double absmax = 0;
  double rms = 0;
  double kurtosis = 0;          // E[(x-m)^4] / E[(x-m)^2]^2; 3 for a normal distribution, 0 for a constant
  double beyond_six_sigma = 0;  // share of elements more than 6 standard deviations off their tensor's mean
};

struct LayerStatistics {
  std::string layer;
  plan::Role role = plan::Role::weight;  // weight, input, output_grad
  Statistics values;
};

HPQF_API std::string statistics_table(const std::vector<LayerStatistics>& statistics);

// Sums of powers in fp64 about zero, tensor by tensor. The six-sigma share is taken inside each tensor, whose own
// deviation is known when it is seen.
class StatisticsSum {
 public:
  void add(const at::Tensor& t);
  Statistics result() const;

 private:
  int64_t elements_ = 0, outliers_ = 0;
  double absmax_ = 0, s1_ = 0, s2_ = 0, s3_ = 0, s4_ = 0;
};

}  // namespace hpqf::engine::sensitivity
