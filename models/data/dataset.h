// What `--data` names, in memory, split into training and validation.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "models/task.h"

namespace hpqf::models {

struct Split {
  // Images uint8 [N, C, H, W] and [N]; text uint8 [N, T] and [N, T]; sentences int16 [N, T] and uint8 [N].
  at::Tensor data, target;
  int64_t size() const { return data.size(0); }
};

struct Dataset {
  std::string name;
  Task task = Task::images;
  Split train, validation;
  int64_t channels = 1;         // images only
  int64_t classes = 10;         // of labels; text: of bytes
  int64_t vocab = 256;          // text and sentences: tokens there are
  double mean = 0, stddev = 1;  // of the training pixels in [0, 1]; images only

  // What a model eats. Images: fp32, zero mean and unit variance; text and sentences: int64.
  at::Tensor prepare_data(const at::Tensor& data) const;
  at::Tensor prepare_target(const at::Tensor& target) const;  // int64
};

struct DatasetOptions {
  int64_t context = 128;  // T of text
  int64_t limit = 0;      // only the first `limit` training samples; 0: all
};

// fashion-mnist            Debian's package dataset-fashion-mnist
// mnist-idx:DIR            the four IDX files of MNIST or a relative, gzip or raw, under their usual names
// text                     Debian's package bible-kjv-text
// text:PATH                the bytes of a file, gzip or raw; the last 5 % validate
// verses                   the same text, a verse a sample, to be told by the part of the Bible it is from
// Error with the list when `spec` is none of these; with the apt line when a package is missing; with the file and what
// is wrong with it when it does not fit.
Dataset load_dataset(std::string_view spec, const DatasetOptions& options = {});

// Windows of `context` bytes, each with the bytes that follow. Consecutive windows do not overlap. Error (with `name`)
// when the last 5 % are shorter than one window.
Dataset text_dataset(std::string name, std::string_view text, const DatasetOptions& options);

inline constexpr const char* kDatasets = "fashion-mnist, mnist-idx:DIR, text, text:PATH, verses";

}  // namespace hpqf::models
