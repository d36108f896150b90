#include "models/bert_mini.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tanh.h>
#include <fmt/format.h>

#include "hpqf/base/error.h"
#include "models/seed.h"

namespace hpqf::models {
namespace {
constexpr int64_t kWidth = 256, kHeads = 4, kBlocks = 4;
}

BertMiniImpl::BertMiniImpl(int64_t vocab, int64_t context, int64_t classes)
    : tokens_(vocab, kWidth),
      positions_(context, kWidth),
      norm_(layer_norm(kWidth)),
      pooler_(kWidth, kWidth),
      classifier_(kWidth, classes) {
  register_module("tokens", tokens_);
  register_module("positions", positions_);
  register_module("norm", norm_);
  blocks_ = add_blocks(*this, kBlocks, {.width = kWidth, .heads = kHeads, .norm = NormPlace::after});
  register_module("pooler", pooler_);
  register_module("classifier", classifier_);
  initialise_transformer(*this);
}

at::Tensor BertMiniImpl::forward(const at::Tensor& tokens) {
  const int64_t time = tokens.size(1), context = positions_->options.num_embeddings();
  if (time > context) {
    throw Error(fmt::format("bert-mini on {} tokens", time), fmt::format("at most {} tokens at once", context),
                "cut the texts, or make the model with a longer context");
  }
  const at::Tensor attend = tokens.ne(0).unsqueeze(1).unsqueeze(1);
  at::Tensor x = norm_(tokens_(tokens) + positions_(at::arange(time, tokens.options())));
  for (TransformerBlock& block : blocks_) x = block(x, attend);
  return classifier_(at::tanh(pooler_(x.select(1, 0))));
}

Model make_bert_mini(const ModelOptions& options) {
  seed_weights(options.seed);
  BertMini model(options.vocab, options.context, options.classes);
  return {"bert-mini", Task::sentences, model.ptr(),
          [model](const at::Tensor& x) mutable { return model->forward(x); }};
}

}  // namespace hpqf::models
