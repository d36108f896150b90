#include "apps/hpqf/model_data.h"

#include <fmt/format.h>

#include <utility>

#include "hpqf/base/error.h"

namespace hpqf::app {

ModelData load_model_data(const std::string& model, const std::string& data, int64_t limit, uint64_t seed) {
  const models::ModelEntry& entry = models::find_model(model);
  const int64_t context = entry.task == models::Task::sentences ? kWords : kContext;
  models::Dataset dataset = models::load_dataset(data, {.context = context, .limit = limit});
  if (dataset.task != entry.task) {
    throw Error(fmt::format("model {} on data {}", model, data),
                fmt::format("{} learns from {}; {} holds {}", model, name(entry.task), data, name(dataset.task)),
                "choose data, or a model, of the same kind");
  }
  models::Model made = entry.make({.in_channels = dataset.channels,
                                   .image = dataset.task == models::Task::images ? dataset.train.data.size(2) : 0,
                                   .classes = dataset.classes,
                                   .vocab = dataset.vocab,
                                   .context = context,
                                   .seed = seed});
  return {entry, std::move(dataset), std::move(made)};
}

}  // namespace hpqf::app
