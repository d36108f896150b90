#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "hpqf/base/error.h"
#include "models/data/dataset.h"

namespace hpqf::models {
namespace {

constexpr int64_t kValidationPercent = 5;

// Views of one copy of the bytes: window i is bytes [i * context, i * context + context], the last one only predicted.
Split windows(const at::Tensor& bytes, int64_t context) {
  const at::Tensor all = bytes.unfold(0, context + 1, context);
  return {all.narrow(1, 0, context), all.narrow(1, 1, context)};
}

}  // namespace

Dataset text_dataset(std::string name, std::string_view text, const DatasetOptions& options) {
  const int64_t context = options.context, size = static_cast<int64_t>(text.size());
  if (context < 1) throw Error(fmt::format("windows of {} bytes", context), "at least 1", "give a longer context");
  const int64_t validation = size * kValidationPercent / 100;
  if (validation < context + 1) {
    const int64_t least = ((context + 1) * 100 + kValidationPercent - 1) / kValidationPercent;
    throw Error(fmt::format("data '{}' with {} bytes of text", name, size),
                fmt::format("at least {} bytes: the last {} % validate, and must hold one window of {}", least,
                            kValidationPercent, context + 1),
                "give a longer text");
  }
  const at::Tensor bytes = at::empty({size}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr<uint8_t>(), text.data(), text.size());
  Dataset dataset;
  dataset.name = std::move(name);
  dataset.task = Task::text;
  dataset.classes = 256;
  dataset.train = windows(bytes.narrow(0, 0, size - validation), context);
  dataset.validation = windows(bytes.narrow(0, size - validation, validation), context);
  if (options.limit > 0) {
    const int64_t count = std::min(options.limit, dataset.train.size());
    dataset.train = {dataset.train.data.narrow(0, 0, count), dataset.train.target.narrow(0, 0, count)};
  }
  return dataset;
}

}  // namespace hpqf::models
