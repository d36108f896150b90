#include "apps/hpqf/doctor_torch.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

namespace hpqf::app {
namespace {

// The rest of the line that begins with `label`.
std::string after(const std::string& text, const std::string& label) {
  const size_t at = text.find(label);
  if (at == std::string::npos) return "";
  const size_t begin = at + label.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

// "Intel(R) ... Version 2024.2-Product Build ..." -> "2024.2-Product"; "... MKL-DNN v3.12.0 (Git ...)" -> "3.12.0"
std::string word_after(const std::string& text, const std::string& label) {
  const std::string rest = after(text, label);
  return rest.substr(0, rest.find(' '));
}

bool enabled(const std::string& config, const std::string& option) {  // "..., USE_CUDA=ON, ..."; a version counts too
  const std::string value = after(config, option + "=");
  return !value.empty() && !value.starts_with("0") && !value.starts_with("OFF");
}

}  // namespace

TorchFacts torch_facts() {
  const std::string config = at::show_config();
  TorchFacts facts;
  facts.version = TORCH_VERSION;
  facts.backend = after(at::get_parallel_info(), "ATen parallel backend: ");
  if (at::Context::hasMKL()) facts.mkl = word_after(at::get_mkl_version(), "Version ");
  if (at::Context::hasMKLDNN()) facts.onednn = word_after(at::get_mkldnn_version(), "MKL-DNN v");
  if (at::Context::hasOpenMP()) facts.openmp = word_after(at::get_openmp_version(), "OpenMP ");
  facts.capability = at::get_cpu_capability();
  facts.threads = at::get_num_threads();
  facts.interop_threads = at::get_num_interop_threads();
  facts.cuda = enabled(config, "USE_CUDA");
  facts.rocm = enabled(config, "USE_ROCM");
  return facts;
}

}  // namespace hpqf::app
