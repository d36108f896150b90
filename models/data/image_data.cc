#include "models/data/image_data.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "hpqf/base/error.h"
#include "models/data/idx.h"

namespace hpqf::models {
namespace {

constexpr int64_t kClasses = 10;

std::string find_idx(const std::string& directory, const std::string& name) {
  const std::filesystem::path raw = std::filesystem::path(directory) / name;
  for (const std::string& path : {raw.string(), raw.string() + ".gz"}) {
    if (std::filesystem::exists(path)) return path;
  }
  throw Error(fmt::format("data in '{}'", directory), fmt::format("a folder with {0} or {0}.gz; it has neither", name),
              "name the folder that holds the four IDX files");
}

Split read_split(const std::string& directory, const std::string& prefix) {
  const LabelledImages both = read_labelled_images(find_idx(directory, prefix + "-images-idx3-ubyte"),
                                                   find_idx(directory, prefix + "-labels-idx1-ubyte"), kClasses);
  return {both.images.unsqueeze(1), both.labels};
}

// Exact, from the 256 possible values.
void measure(Dataset& dataset) {
  std::array<int64_t, 256> histogram{};
  const uint8_t* pixel = dataset.train.data.const_data_ptr<uint8_t>();
  for (int64_t i = 0; i < dataset.train.data.numel(); ++i) ++histogram[pixel[i]];
  double count = 0, sum = 0, squares = 0;
  for (int value = 0; value < 256; ++value) {
    const double x = value / 255.0, n = static_cast<double>(histogram[value]);
    count += n;
    sum += n * x;
    squares += n * x * x;
  }
  dataset.mean = sum / count;
  dataset.stddev = std::sqrt(std::max(squares / count - dataset.mean * dataset.mean, 0.0));
  if (dataset.stddev < 1e-6) dataset.stddev = 1;  // a constant image has nothing to normalise
}

}  // namespace

Dataset image_dataset(std::string name, const std::string& directory) {
  Dataset dataset;
  dataset.name = std::move(name);
  dataset.task = Task::images;
  dataset.classes = kClasses;
  dataset.train = read_split(directory, "train");
  dataset.validation = read_split(directory, "t10k");
  if (dataset.train.data.sizes().slice(1) != dataset.validation.data.sizes().slice(1)) {
    throw Error(
        fmt::format("data '{}'", dataset.name),
        fmt::format("training and test images of one size; these are {} x {} and {} x {}", dataset.train.data.size(2),
                    dataset.train.data.size(3), dataset.validation.data.size(2), dataset.validation.data.size(3)),
        "put the files of one data set into the folder");
  }
  measure(dataset);
  return dataset;
}

Dataset fashion_mnist(const std::string& directory) {
  if (!std::filesystem::is_directory(directory)) {
    throw Error(fmt::format("data 'fashion-mnist': '{}'", directory),
                "Debian's package dataset-fashion-mnist, which is not installed",
                "apt-get install dataset-fashion-mnist");
  }
  return image_dataset("fashion-mnist", directory);
}

}  // namespace hpqf::models
