#include "hpqf/engine/describe.h"

#include <c10/util/Type.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <string>

#include "hpqf/engine/runtime.h"

namespace hpqf::engine {
namespace {

using plan::LayerKind;

struct Kind {
  std::string_view part;
  LayerKind kind;
};
// First match wins: "ConvTranspose" before "Conv", "LayerNorm" before "Layer...".
constexpr std::array kKinds = {
    Kind{"ConvTranspose", LayerKind::conv_transpose},
    Kind{"Norm", LayerKind::norm},
    Kind{"Softmax", LayerKind::softmax},
    Kind{"Softmin", LayerKind::softmax},
    Kind{"LSTM", LayerKind::rnn},
    Kind{"GRU", LayerKind::rnn},
    Kind{"RNN", LayerKind::rnn},
    Kind{"MultiheadAttention", LayerKind::attention},
    Kind{"Embedding", LayerKind::embedding},
};
// Whole class names (after "Impl" is cut), because the words also occur inside models' own classes (ConvNet,
// LinearHead).
constexpr std::array kWhole = {
    Kind{"Conv1d", LayerKind::conv},
    Kind{"Conv2d", LayerKind::conv},
    Kind{"Conv3d", LayerKind::conv},
    Kind{"Conv1D", LayerKind::linear},
    Kind{"LazyConv1d", LayerKind::conv},
    Kind{"LazyConv2d", LayerKind::conv},
    Kind{"LazyConv3d", LayerKind::conv},
    Kind{"Linear", LayerKind::linear},
    Kind{"LazyLinear", LayerKind::linear},
    Kind{"Bilinear", LayerKind::linear},
    Kind{"NonDynamicallyQuantizableLinear", LayerKind::linear},
    Kind{"ReLU", LayerKind::activation},
    Kind{"ReLU6", LayerKind::activation},
    Kind{"GELU", LayerKind::activation},
    Kind{"SiLU", LayerKind::activation},
    Kind{"Tanh", LayerKind::activation},
    Kind{"Sigmoid", LayerKind::activation},
    Kind{"ELU", LayerKind::activation},
    Kind{"CELU", LayerKind::activation},
    Kind{"SELU", LayerKind::activation},
    Kind{"LeakyReLU", LayerKind::activation},
    Kind{"PReLU", LayerKind::activation},
    Kind{"Mish", LayerKind::activation},
    Kind{"Softplus", LayerKind::activation},
    Kind{"Hardswish", LayerKind::activation},
    Kind{"Hardtanh", LayerKind::activation},
    Kind{"GLU", LayerKind::activation},
};

std::string_view short_name(std::string_view name) {
  if (auto at = name.rfind(':'); at != std::string_view::npos) name.remove_prefix(at + 1);
  if (auto at = name.rfind('.'); at != std::string_view::npos) name.remove_prefix(at + 1);
  if (name.ends_with("Impl")) name.remove_suffix(4);
  return name;
}

std::string class_name(const torch::nn::Module& m) {
  std::string full = c10::demangle(typeid(m).name());
  if (auto at = full.find('<'); at != std::string::npos) full.resize(at);
  return std::string(short_name(full));
}

// "torch::nn::Conv2dImpl", "Conv2d", "LlamaRMSNorm" -> its kind. Unknown classes are `other`: their products follow the
// plan.
LayerKind kind_of(std::string_view class_name) {
  const std::string_view name = short_name(class_name);
  for (const auto& k : kWhole)
    if (name == k.part) return k.kind;
  if (name.ends_with("Loss")) return LayerKind::loss;
  for (const auto& k : kKinds) {
    // A word at the end of the class name (LlamaRMSNorm), or with a dimension or "Cell" behind it (BatchNorm2d,
    // LSTMCell).
    const auto at = name.find(k.part);
    if (at == std::string_view::npos) continue;
    const auto tail = name.substr(at + k.part.size());
    if (tail.empty() || tail == "Cell" || tail == "2d" || tail == "1d" || tail == "3d" || tail == "Bag") return k.kind;
  }
  return LayerKind::other;
}

}  // namespace

bool computes_positions(std::string_view class_name) {
  constexpr std::array kWords = {"Rotary", "RoPE", "Rope", "Positional", "PositionEmbedding", "SinusoidalPosition"};
  return std::ranges::any_of(kWords, [&](const char* w) { return class_name.find(w) != std::string_view::npos; });
}

ModelDescription describe(const torch::nn::Module& model) {
  ModelDescription d;
  d.facts.model = class_name(model);
  auto add = [&](const std::string& name, const torch::nn::Module& m) {
    plan::LayerFacts facts{name, class_name(m), LayerKind::other, 0};
    facts.kind = kind_of(facts.type);
    for (const auto& p : m.named_parameters(/*recurse=*/false)) {
      facts.parameters += p.value().defined() ? p.value().numel() : 0;
      d.parameters.push_back({name, p.key(), p.value()});
    }
    if (facts.kind == LayerKind::other && facts.parameters == 0 && m.children().empty() &&
        computes_positions(facts.type))
      facts.kind = LayerKind::position;
    d.facts.layers.push_back(std::move(facts));
  };
  add("", model);
  for (const auto& m : model.named_modules(/*name_prefix=*/"", /*include_self=*/false)) add(m.key(), *m.value());
  return d;
}

}  // namespace hpqf::engine
