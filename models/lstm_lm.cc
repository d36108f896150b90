#include "models/lstm_lm.h"

#include "models/seed.h"

namespace hpqf::models {
namespace {
constexpr int64_t kEmbedding = 128, kHidden = 256, kLayers = 2;
}

LstmLmImpl::LstmLmImpl(int64_t vocab)
    : embedding_(vocab, kEmbedding),
      lstm_(torch::nn::LSTMOptions(kEmbedding, kHidden).num_layers(kLayers).batch_first(true)),
      head_(kHidden, vocab) {
  register_module("embedding", embedding_);
  register_module("lstm", lstm_);
  register_module("head", head_);
}

at::Tensor LstmLmImpl::forward(const at::Tensor& bytes) {
  return head_(std::get<0>(lstm_->forward(embedding_(bytes))));
}

Model make_lstm_lm(const ModelOptions& options) {
  seed_weights(options.seed);
  LstmLm model(options.vocab);
  return {"lstm-lm", Task::text, model.ptr(), [model](const at::Tensor& x) mutable { return model->forward(x); }};
}

}  // namespace hpqf::models
