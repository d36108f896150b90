#include "models/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpqf/base/error.h"
#include "models/data/bible.h"
#include "models/data/image_data.h"
#include "models/data/read_file.h"
#include "models/data/verses.h"

namespace hpqf::models {

at::Tensor Dataset::prepare_data(const at::Tensor& data) const {
  if (task != Task::images) return data.to(at::kLong);
  // (x / 255 - mean) / stddev as one multiply and one add.
  return data.to(at::kFloat).mul_(1.0 / (255.0 * stddev)).sub_(mean / stddev);
}

at::Tensor Dataset::prepare_target(const at::Tensor& target) const { return target.to(at::kLong); }

Dataset load_dataset(std::string_view spec, const DatasetOptions& options) {
  if (options.limit < 0) {
    throw Error(fmt::format("limit of {} training samples", options.limit), "at least 1; 0 means all",
                "give a positive limit, or none");
  }
  const std::size_t colon = spec.find(':');
  const std::string_view kind = spec.substr(0, colon);
  const std::string path(colon == std::string_view::npos ? "" : spec.substr(colon + 1));
  const bool bare = colon == std::string_view::npos;
  Dataset dataset;
  if (kind == "fashion-mnist" && bare) {
    dataset = fashion_mnist();
  } else if (kind == "mnist-idx" && !path.empty()) {
    dataset = image_dataset(std::string(spec), path);
  } else if (kind == "text" && bare) {
    return text_dataset("text", read_bible(), options);
  } else if (kind == "text" && !path.empty()) {
    return text_dataset(std::string(spec), read_file(path), options);
  } else if (kind == "verses" && bare) {
    dataset = verses_dataset(read_bible(), options);
  } else {
    throw Error(fmt::format("data '{}'", spec), kDatasets, "choose one of these");
  }
  if (options.limit > 0) {
    const int64_t count = std::min(options.limit, dataset.train.size());
    dataset.train = {dataset.train.data.narrow(0, 0, count), dataset.train.target.narrow(0, 0, count)};
  }
  return dataset;
}

}  // namespace hpqf::models
