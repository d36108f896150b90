#include "models/registry.h"

#include <fmt/format.h>

#include "hpqf/base/error.h"
#include "models/bert_mini.h"
#include "models/gpt_mini.h"
#include "models/lstm_lm.h"
#include "models/resnet20.h"
#include "models/vit_tiny.h"

namespace hpqf::models {
namespace {

constexpr ModelEntry kModels[] = {
    {"resnet20", Task::images, make_resnet20, "ResNet-20 for small images, 16/32/64 channels, 0.27 M parameters"},
    {"vit-tiny", Task::images, make_vit_tiny,
     "vision transformer, patches of 4, 6 blocks, width 96, 0.68 M parameters"},
    {"bert-mini", Task::sentences, make_bert_mini, "encoder for sentences, 4 layers, 4 heads, width 256"},
    {"gpt-mini", Task::text, make_gpt_mini, "byte-level decoder, 4 layers, 4 heads, width 128, 0.88 M parameters"},
    {"lstm-lm", Task::text, make_lstm_lm, "byte-level LSTM, 2 x 256, embedding 128, 1.0 M parameters"},
};

}  // namespace

std::span<const ModelEntry> all_models() { return kModels; }

const ModelEntry& find_model(std::string_view name) {
  std::string names;
  for (const ModelEntry& entry : kModels) {
    if (entry.name == name) return entry;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  }
  throw Error(fmt::format("model '{}'", name), names, "choose one of these models");
}

}  // namespace hpqf::models
