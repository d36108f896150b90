#include "models/gpt_mini.h"

#include <ATen/ops/arange.h>
#include <fmt/format.h>

#include <cmath>

#include "hpqf/base/error.h"
#include "models/seed.h"

namespace hpqf::models {
namespace {

constexpr int64_t kWidth = 128, kHeads = 4, kBlocks = 4;
}  // namespace

GptMiniImpl::GptMiniImpl(int64_t vocab, int64_t context)
    : tokens_(vocab, kWidth),
      positions_(context, kWidth),
      norm_(layer_norm(kWidth)),
      head_(torch::nn::LinearOptions(kWidth, vocab).bias(false)) {
  register_module("tokens", tokens_);
  register_module("positions", positions_);
  blocks_ = add_blocks(*this, kBlocks, {.width = kWidth, .heads = kHeads, .causal = true});
  register_module("norm", norm_);
  register_module("head", head_);
  // The two that write into the residual stream start smaller, by sqrt(2 * blocks): its variance then does not grow
  // with depth.
  initialise_transformer(*this, std::sqrt(2.0 * kBlocks));
}

at::Tensor GptMiniImpl::forward(const at::Tensor& bytes) {
  const int64_t time = bytes.size(1), context = positions_->options.num_embeddings();
  if (time > context) {
    throw Error(fmt::format("gpt-mini on {} tokens", time), fmt::format("at most {} tokens at once", context),
                "shorten the windows, or make the model with a longer context");
  }
  at::Tensor x = tokens_(bytes) + positions_(at::arange(time, bytes.options()));
  for (TransformerBlock& block : blocks_) x = block(x);
  return head_(norm_(x));
}

Model make_gpt_mini(const ModelOptions& options) {
  seed_weights(options.seed);
  GptMini model(options.vocab, options.context);
  return {"gpt-mini", Task::text, model.ptr(), [model](const at::Tensor& x) mutable { return model->forward(x); }};
}

}  // namespace hpqf::models
