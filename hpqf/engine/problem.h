// A layer of its own, under a plan of its own, to be timed.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hpqf/engine/problem_shape.h"
#include "hpqf/observe/event.h"
#include "hpqf/plan/plan.h"

namespace hpqf::engine {

class Problem {
 public:
  // Random operands from a generator of its own: the user's random numbers are not touched.
  explicit Problem(const ProblemShape& shape);

  // One forward and backward through the engine. The weights are new each time, as after an optimizer step.
  double seconds(const PrecisionPlan& plan);

  // Why the plan would only be emulated; "" when every product runs natively. Runs it once.
  std::string emulated(const PrecisionPlan& plan);

 private:
  double run(const PrecisionPlan& plan, std::shared_ptr<observe::EventSink> events);
  at::Tensor x_, g_;
  std::vector<at::Tensor> weights_;  // and biases
  std::function<at::Tensor()> forward_;
};

}  // namespace hpqf::engine
