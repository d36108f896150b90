// A loop of your own: the model follows the plan while the Runtime lives. With a loss scale, because fp16 gradients
// need one.
#include <torch/torch.h>

#include "hpqf/engine/runtime.h"
#include "hpqf/train/loss_scaler.h"

int main() {
  torch::nn::Sequential model(torch::nn::Linear(64, 128), torch::nn::ReLU(), torch::nn::Linear(128, 10));
  torch::optim::AdamW optimizer(model->parameters(), 1e-3);
  const auto audit = std::make_shared<hpqf::observe::Audit>();
  hpqf::Runtime runtime(*model, hpqf::PrecisionPlan::with_sensitive("fp16", {"2"}), {.events = audit});
  hpqf::LossScaler scaler;

  const torch::Tensor data = torch::randn({256, 64}), target = torch::randint(10, {256});
  for (int step = 0; step < 100; ++step) {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::cross_entropy_loss(model->forward(data), target);
    scaler.scale(loss).backward();
    const hpqf::StepStatus status = scaler.step(optimizer);
    if (!status) std::printf("step %d skipped: %s\n", step, status.cause.c_str());
    scaler.update();
    if (step % 20 == 0) std::printf("step %d, loss %.4f\n", step, loss.item<double>());
  }
  std::puts(audit->report().table().c_str());
}
