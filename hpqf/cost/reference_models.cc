#include "hpqf/cost/reference_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <vector>

#include "hpqf/base/error.h"
#include "hpqf/base/text.h"

namespace hpqf::cost {
namespace {

using O = ReferenceOptions;

double seq(const O& o, double usual) { return o.seq > 0 ? o.seq : usual; }
double size(const O& o, double usual) { return o.image_size > 0 ? o.image_size : usual; }

Workload decoder(const char* name, const O& o, TransformerShape shape) {
  shape.seq = seq(o, shape.seq);
  shape.fused_attention = o.fused_attention;
  shape.causal = o.causal_exact ? Causal::counted_exact : Causal::counted_full;
  return gpt(name, shape);
}

Workload encoder(const char* name, const O& o, TransformerShape shape) {
  shape.seq = seq(o, 128);  // the length of most of BERT's pre-training, and of sentence tasks
  shape.vocab = 30522;
  shape.fused_attention = o.fused_attention;
  return bert(name, shape);
}

constexpr std::array kModels{
    ReferenceModel{"resnet18", "ImageNet",
                   [](const O& o) {
                     return resnet18({size(o, 224), 3, 1000});
                   }},
    ReferenceModel{"resnet20", "CIFAR-10",
                   [](const O& o) {
                     return resnet20({size(o, 32), 3, 10});
                   }},
    ReferenceModel{"resnet50", "ImageNet",
                   [](const O& o) {
                     return resnet50({size(o, 224), 3, 1000});
                   }},
    ReferenceModel{"bert-base", "classifier of sequences, 128 tokens",
                   [](const O& o) { return encoder("bert-base", o, {.layers = 12, .hidden = 768, .heads = 12}); }},
    ReferenceModel{"bert-large", "classifier of sequences, 128 tokens",
                   [](const O& o) { return encoder("bert-large", o, {.layers = 24, .hidden = 1024, .heads = 16}); }},
    ReferenceModel{"gpt2", "124 M parameters, 1024 tokens",
                   [](const O& o) {
                     return decoder("gpt2", o, {.layers = 12, .hidden = 768, .heads = 12, .vocab = 50257, .seq = 1024});
                   }},
    ReferenceModel{"gpt-100b", "80 blocks of width 10240, 2048 tokens",
                   [](const O& o) {
                     return decoder("gpt-100b", o,
                                    {.layers = 80, .hidden = 10240, .heads = 80, .vocab = 50257, .seq = 2048});
                   }},
    ReferenceModel{"gpt-mini", "the byte-level model of hpqf train",
                   [](const O& o) {
                     return decoder(
                         "gpt-mini", o,
                         {.layers = 4, .hidden = 128, .heads = 4, .vocab = 256, .seq = 128, .tied_head = false});
                   }},
    ReferenceModel{"lstm-lm", "the byte-level model of hpqf train",
                   [](const O& o) { return lstm_lm("lstm-lm", {.seq = seq(o, 128)}); }},
};

struct Key {
  const char* name;
  double TransformerShape::*field;
};
constexpr std::array kKeys{Key{"layers", &TransformerShape::layers}, Key{"hidden", &TransformerShape::hidden},
                           Key{"heads", &TransformerShape::heads}, Key{"vocab", &TransformerShape::vocab},
                           Key{"seq", &TransformerShape::seq}};

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(fmt::format("model '{}': {}", text, why),
              "gpt:layers=L,hidden=H,heads=A,vocab=V,seq=T, whole numbers from 1 to 10^7, heads dividing hidden",
              "correct the description, e.g. gpt:layers=24,hidden=2048,heads=16,vocab=50257,seq=2048");
}

Workload described(std::string_view text, const O& options) {
  TransformerShape shape{.vocab = 50257, .seq = 2048};
  std::string_view rest = text.substr(text.find(':') + 1);
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const size_t equals = item.find('=');
    const Key* key = nullptr;
    for (const Key& k : kKeys)
      if (item.substr(0, equals) == k.name) key = &k;
    if (!key || equals == std::string_view::npos) refuse(text, fmt::format("'{}' is no key=value of a decoder", item));
    int64_t value = 0;
    const std::string_view digits = item.substr(equals + 1);
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size() || value < 1 || value > 10'000'000)
      refuse(text, fmt::format("{} is '{}'", key->name, digits));
    shape.*key->field = static_cast<double>(value);
  }
  if (shape.layers < 1 || shape.hidden < 1) refuse(text, "layers and hidden are needed");
  if (shape.heads < 1) shape.heads = 1;
  if (static_cast<int64_t>(shape.hidden) % static_cast<int64_t>(shape.heads) != 0)
    refuse(text, fmt::format("{} heads do not divide {}", shape.heads, shape.hidden));
  const std::string name(text);
  return decoder(name.c_str(), options, shape);
}

}  // namespace

std::span<const ReferenceModel> reference_models() { return kModels; }

Workload reference_workload(std::string_view name, const ReferenceOptions& options) {
  const std::string wanted = base::lower(name);
  if (wanted.starts_with("gpt:")) return described(wanted, options);
  std::vector<std::string> names;
  for (const ReferenceModel& model : kModels) {
    if (wanted == model.name) return model.make(options);
    names.emplace_back(model.name);
  }
  throw Error(fmt::format("model '{}'", name), fmt::format("{}, or gpt:layers=L,hidden=H,...", fmt::join(names, ", ")),
              fmt::format("take one of these, e.g. {}", base::nearest(names, wanted, 1).front()));
}

}  // namespace hpqf::cost
