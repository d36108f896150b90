#include <array>

#include "hpqf/base/error.h"
#include "hpqf/base/text.h"
#include "hpqf/formats/format.h"

namespace hpqf::formats {
namespace {

constexpr FormatInfo integer(Format format, const char* name, int bits) {
  return {format, name, bits, 0,    bits - 1, static_cast<float>((1 << (bits - 1)) - 1),
          1.0f,   1.0f, true, true, false,    false};
}

// One row per format, in the order of the enum.
//  format, name, bits, exponent, mantissa, largest, smallest normal, smallest, integer, saturates, infinity, nan
constexpr std::array<FormatInfo, kFormatCount> kTable = {{
    {Format::fp32, "fp32", 32, 8, 23, 0x1.fffffep127f, 0x1p-126f, 0x1p-149f, false, false, true, true},
    {Format::tf32, "tf32", 32, 8, 10, 0x1.ffcp127f, 0x1p-126f, 0x1p-136f, false, false, true, true},
    {Format::bf16, "bf16", 16, 8, 7, 0x1.fep127f, 0x1p-126f, 0x1p-133f, false, false, true, true},
    {Format::fp16, "fp16", 16, 5, 10, 65504.0f, 0x1p-14f, 0x1p-24f, false, false, true, true},
    {Format::fp8_e4m3, "fp8_e4m3", 8, 4, 3, 448.0f, 0x1p-6f, 0x1p-9f, false, true, false, true},
    {Format::fp8_e5m2, "fp8_e5m2", 8, 5, 2, 57344.0f, 0x1p-14f, 0x1p-16f, false, true, true, true},
    integer(Format::int16, "int16", 16),
    integer(Format::int12, "int12", 12),
    integer(Format::int8, "int8", 8),
    integer(Format::int7, "int7", 7),
    integer(Format::int4, "int4", 4),
}};

}  // namespace

const FormatInfo& info(Format format) { return kTable[static_cast<size_t>(format)]; }
std::span<const FormatInfo> all_formats() { return kTable; }

int storage_bits(Format format) {
  switch (format) {
    case Format::int12:
      return 16;
    case Format::int7:
      return 8;
    default:
      return info(format).bits;
  }
}

std::optional<Format> find_format(std::string_view name) {
  const std::string wanted = base::lower(name);
  if (wanted == "fp8") return Format::fp8_e4m3;
  for (const FormatInfo& row : kTable)
    if (wanted == row.name) return row.format;
  return std::nullopt;
}

Format parse_format(std::string_view name) {
  if (const auto found = find_format(name)) return *found;
  std::vector<std::string> names{"fp8"};
  std::string allowed;
  for (const FormatInfo& row : kTable) {
    names.emplace_back(row.name);
    allowed += (allowed.empty() ? "" : ", ") + names.back();
  }
  throw Error("number format \"" + std::string(name) + "\"", allowed + "; fp8 means fp8_e4m3",
              "name one of them; the nearest is " + base::nearest(names, name, 1).front());
}

}  // namespace hpqf::formats
