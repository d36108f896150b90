// hpqf profile: the sensitivity of a reference model, fresh or from a run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hpqf::app {

struct SensitivityConfig {
  std::string model, data, run, checkpoint;
  std::vector<std::string> formats;
  int64_t samples = 256, batch_size = 32;
  uint64_t seed = 0;
  bool hessian = false, training = false, true_labels = false, json = false, quiet = false;
  int64_t hessian_samples = 64;
  std::string out;
};

void add_sensitivity_options(CLI::App& command, SensitivityConfig& config);
int profile_sensitivity(SensitivityConfig config);

inline constexpr const char* kSensitivityHelp =
    "Scores are measured: nats of KL divergence that rounding this operand adds, labels drawn from the model's "
    "softmax.\n"
    "Measure a trained model (--run, --checkpoint): on fresh weights the scores say little.\n"
    "Examples:\n"
    "  hpqf profile --run runs/first\n"
    "  hpqf profile --model resnet20 --data fashion-mnist --checkpoint "
    "runs/first/checkpoints/step-00001200.safetensors\n"
    "  hpqf profile --run runs/first --formats int8,int4,fp8 --samples 512 --hessian --out sensitivity.json\n"
    "  hpqf profile --run runs/first --json | jq '.layers[].name'\n"
    "  hpqf profile --run runs/first --out sensitivity.svg";

}  // namespace hpqf::app
