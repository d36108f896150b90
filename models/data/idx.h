// The IDX format of MNIST and its relatives: two zero bytes, a type byte, the number of dimensions, each dimension as a
// big-endian uint32, then the elements in row-major order (yann.lecun.com/exdb/mnist, "File formats").
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace hpqf::models {

// A uint8 tensor of `dimensions` dimensions; the file may be gzip. Error naming the file and what is wrong with it:
// magic, type, dimensions, fewer or more bytes than the header promises.
at::Tensor read_idx(const std::string& path, int64_t dimensions);

// Images [N, H, W] and their labels [N]. Error when the counts differ, there are none, or a label is not in [0,
// classes).
struct LabelledImages {
  at::Tensor images, labels;  // both uint8
};
LabelledImages read_labelled_images(const std::string& images, const std::string& labels, int64_t classes);

}  // namespace hpqf::models
