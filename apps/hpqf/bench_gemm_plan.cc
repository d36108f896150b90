#include "apps/hpqf/bench_gemm_plan.h"

namespace hpqf::app {

GemmBenchPlan read_gemm_plan(const BenchGemmConfig& config) {
  check(config.common);
  check_model_options(config.model, config.batch_size);
  GemmBenchPlan plan;
  for (const std::string& text : distinct("formats", config.formats)) plan.formats.push_back(read_kernel_format(text));
  for (const std::string& text : distinct("forms", config.forms)) plan.forms.push_back(&find_gemm_form(text));
  plan.path = read_kernel_path(config.path);
  if (config.model.empty()) {
    for (const std::string& text : distinct("shapes", config.shapes)) plan.shapes.push_back(parse_shape(text));
  } else {
    plan.shapes = model_shapes(config.model, config.batch_size);
  }
  return plan;
}

}  // namespace hpqf::app
