// A reference model with its forward erased, and what it learns from. These are ordinary torch::nn models: nothing in
// them knows of precision.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "models/task.h"

namespace torch::nn {
class Module;
}

namespace hpqf::models {

struct ModelOptions {
  int64_t in_channels = 1;  // images only
  int64_t image = 28;       // images only: height and width; convolutional models take any
  int64_t classes = 10;     // of classifiers
  int64_t vocab = 256;      // text: one token is one byte; sentences: words
  int64_t context = 128;    // text and sentences: tokens seen at once, the T of the shapes below
  uint64_t seed = 0;        // of the initial weights
};

struct Model {
  std::string name;
  Task task = Task::images;
  std::shared_ptr<torch::nn::Module> module;
  // images: [B, C, H, W] fp32 -> logits [B, classes]; text: [B, T] int64 -> logits [B, T, vocab];
  // sentences: [B, T] int64 -> logits [B, classes]
  std::function<at::Tensor(const at::Tensor&)> forward;

  int64_t parameters() const;  // elements of all parameters
};

// Mean cross entropy in nats. images and sentences: target [B]; text: target [B, T], the byte that follows each input
// byte.
at::Tensor loss(Task task, const at::Tensor& output, const at::Tensor& target);

}  // namespace hpqf::models
