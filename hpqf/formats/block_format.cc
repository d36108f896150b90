#include "hpqf/formats/block_format.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>

#include "hpqf/base/error.h"
#include "hpqf/base/text.h"

namespace hpqf::formats {
namespace {

constexpr int kLargestBlock = 65536;
constexpr const char* kAllowed =
    "format or format[shape], format[scale], format[shape,scale]; shape: none, tensor, row, 1xN with N from 1 to "
    "65536; "
    "scale: fp32, pow2";

[[noreturn]] void refuse(std::string_view text, std::string todo) {
  throw Error("block format \"" + std::string(text) + "\"", kAllowed, std::move(todo));
}

std::optional<int> parse_vector(std::string_view word) {
  if (!word.starts_with("1x")) return std::nullopt;
  int n = 0;
  const auto [end, error] = std::from_chars(word.data() + 2, word.data() + word.size(), n);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return n;
}

void apply_shape(BlockFormat& out, std::string_view word, std::string_view text) {
  out.block = 0;
  if (word == "none") {
    out.shape = BlockShape::none;
    out.scale = ScaleType::none;
    return;
  }
  if (out.scale == ScaleType::none) out.scale = ScaleType::fp32;
  if (word == "tensor") {
    out.shape = BlockShape::tensor;
  } else if (word == "row") {
    out.shape = BlockShape::row;
  } else if (const auto n = parse_vector(word)) {
    out.shape = BlockShape::vector;
    out.block = *n;
  } else {
    refuse(text, "write the shape as none, tensor, row or 1xN, not \"" + std::string(word) + "\"");
  }
}

bool apply_scale(BlockFormat& out, std::string_view word) {
  if (word == "fp32") {
    out.scale = ScaleType::fp32;
  } else if (word == "pow2") {
    out.scale = ScaleType::pow2;
  } else {
    return false;
  }
  return true;
}

std::string shape_text(const BlockFormat& f) {
  switch (f.shape) {
    case BlockShape::none:
      return "none";
    case BlockShape::tensor:
      return "tensor";
    case BlockShape::row:
      return "row";
    case BlockShape::vector:
      return "1x" + std::to_string(f.block);
  }
  return "";
}

}  // namespace

BlockFormat default_block(Format format) {
  switch (format) {
    case Format::fp8_e4m3:
    case Format::fp8_e5m2:
      return {format, BlockShape::tensor, 0, ScaleType::fp32};
    case Format::int16:
    case Format::int12:
    case Format::int8:
    case Format::int7:
      return {format, BlockShape::vector, 64, ScaleType::fp32};
    case Format::int4:
      return {format, BlockShape::vector, 32, ScaleType::fp32};
    default:
      return {format, BlockShape::none, 0, ScaleType::none};
  }
}

BlockFormat parse_block_format(std::string_view text) {
  const std::string low = base::lower(text);
  const size_t open = low.find('[');
  BlockFormat out = default_block(parse_format(low.substr(0, open)));
  if (open == std::string::npos) return out;
  if (low.back() != ']') refuse(text, "close the bracket");
  const std::string inside = low.substr(open + 1, low.size() - open - 2);
  const size_t comma = inside.find(',');
  if (comma != std::string::npos) {
    apply_shape(out, inside.substr(0, comma), text);
    if (!apply_scale(out, inside.substr(comma + 1))) refuse(text, "write the scale as fp32 or pow2");
  } else if (!apply_scale(out, inside)) {
    apply_shape(out, inside, text);
  }
  check(out);
  return out;
}

std::string to_string(const BlockFormat& format) {
  const BlockFormat usual = default_block(format.format);
  std::string text = name(format.format);
  if (format == usual) return text;
  const bool pow2 = format.scale == ScaleType::pow2;
  if (format.shape == usual.shape && format.block == usual.block) return text + (pow2 ? "[pow2]" : "[fp32]");
  return text + "[" + shape_text(format) + (pow2 ? ",pow2]" : "]");
}

// Runs before every kernel: builds text only for the error.
void check(const BlockFormat& format) {
  const auto fail = [&](const char* allowed, std::string todo) {
    throw Error("block format " + to_string(format), allowed, std::move(todo));
  };
  const bool scaled = format.shape != BlockShape::none;
  const Format f = format.format;
  if (scaled != (format.scale != ScaleType::none))
    fail("a scale type with a block shape, and none without", "set both shape and scale, or neither");
  if (scaled && (f == Format::fp32 || f == Format::tf32 || f == Format::bf16))
    fail("no scale for fp32, tf32 and bf16: they have the range of fp32", std::string("write ") + name(f));
  if (!scaled && info(f).is_integer)
    fail("integer formats with a scale: tensor, row or 1xN", std::string("write ") + name(f) + " for the default");
  const bool fits =
      format.shape == BlockShape::vector ? format.block >= 1 && format.block <= kLargestBlock : format.block == 0;
  if (!fits) fail("N from 1 to 65536 for 1xN, and no N for other shapes", "choose N, e.g. 64");
}

float block_scale(const BlockFormat& format, float amax) {
  if (format.scale == ScaleType::none) return 1.0f;
  const uint32_t magnitude = std::bit_cast<uint32_t>(amax) & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return std::numeric_limits<float>::quiet_NaN();
  const float scale = std::max(amax / info(format.format).largest, std::numeric_limits<float>::min());
  if (format.scale == ScaleType::fp32) return scale;
  // Up to the next power of two: a carry out of the fraction raises the exponent. At most 2^126 (from FLT_MAX / 7).
  return std::bit_cast<float>((std::bit_cast<uint32_t>(scale) + 0x7fffffu) & 0x7f800000u);
}

}  // namespace hpqf::formats
