// The whole of it: a model in fp16 with its last layer kept at fp32, and what really ran.
#include <torch/torch.h>

#include "hpqf/train/trainer.h"

int main() {
  torch::nn::Sequential model(torch::nn::Linear(64, 128), torch::nn::ReLU(), torch::nn::Linear(128, 10));
  hpqf::TensorLoader loader(torch::randn({4096, 64}), torch::randint(10, {4096}));
  hpqf::MixedPrecisionTrainer trainer(model, {.precision = "fp16", .sensitive_layers = {"2"}});
  trainer.train(loader, [](auto& y, auto& target) { return torch::cross_entropy_loss(y, target); }, {.epochs = 2});
  std::puts(trainer.audit().table().c_str());
}
