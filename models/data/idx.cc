#include "models/data/idx.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "hpqf/base/error.h"
#include "models/data/read_file.h"

namespace hpqf::models {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;

[[noreturn]] void refuse(const std::string& path, const std::string& expected) {
  throw Error(fmt::format("IDX file '{}'", path), expected, "fetch the file again, or name the right one");
}

uint32_t big_endian(const std::string& bytes, std::size_t at) {
  uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

}  // namespace

at::Tensor read_idx(const std::string& path, int64_t dimensions) {
  const std::string bytes = read_file(path);
  if (bytes.size() < 4) refuse(path, fmt::format("a header of at least 4 bytes; this file has {}", bytes.size()));
  const auto byte = [&](std::size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (byte(0) != 0 || byte(1) != 0) {
    refuse(path, fmt::format("the magic bytes 00 00; this file begins with {:02x} {:02x}", byte(0), byte(1)));
  }
  if (byte(2) != kUnsignedByte) {
    refuse(path, fmt::format("elements of type 0x08 (unsigned byte); this file has type 0x{:02x}", byte(2)));
  }
  if (byte(3) != dimensions) refuse(path, fmt::format("{} dimensions; this file has {}", dimensions, byte(3)));
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(dimensions);
  if (bytes.size() < header) {
    refuse(path, fmt::format("a header of {} bytes; this file ends after {}", header, bytes.size()));
  }
  std::vector<int64_t> sizes;
  std::size_t promised = 1;
  for (int64_t d = 0; d < dimensions; ++d) {
    sizes.push_back(big_endian(bytes, 4 + 4 * static_cast<std::size_t>(d)));
    // The product of an edited header must not wrap around to the size of the file.
    if (__builtin_mul_overflow(promised, static_cast<std::size_t>(sizes.back()), &promised)) {
      refuse(path, fmt::format("dimensions that fit in memory; this header says {}", fmt::join(sizes, " x ")));
    }
  }
  const std::size_t present = bytes.size() - header;
  if (present != promised) {
    refuse(path, fmt::format("{} bytes of data for {}; this file has {}", promised, fmt::join(sizes, " x "), present));
  }
  at::Tensor result = at::empty(sizes, at::kByte);
  if (present > 0) std::memcpy(result.mutable_data_ptr<uint8_t>(), bytes.data() + header, present);
  return result;
}

LabelledImages read_labelled_images(const std::string& images, const std::string& labels, int64_t classes) {
  LabelledImages result{read_idx(images, 3), read_idx(labels, 1)};
  const int64_t count = result.images.size(0);
  if (result.images.numel() == 0) refuse(images, "at least one image");
  if (result.labels.size(0) != count) {
    refuse(labels, fmt::format("one label for each of the {} images; this file has {}", count, result.labels.size(0)));
  }
  const uint8_t* label = result.labels.const_data_ptr<uint8_t>();
  const uint8_t* bad = std::find_if(label, label + count, [&](uint8_t value) { return value >= classes; });
  if (bad != label + count) {
    refuse(labels, fmt::format("labels from 0 to {}; label {} of this file is {}", classes - 1, bad - label, *bad));
  }
  return result;
}

}  // namespace hpqf::models
