#include "models/data/bible.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>

#include "hpqf/base/error.h"
#include "models/data/lzw.h"
#include "models/data/read_file.h"

namespace hpqf::models {
namespace {

constexpr std::string_view kMagic = "EC02Compressed Data File";
constexpr std::size_t kWindowSizeAt = 0x54, kWindowsAt = 0x58, kOffsetsAt = 0x5c;

constexpr const char* kInstall = "apt-get install bible-kjv-text, or train on your own file with --data text:PATH";

uint32_t big_endian(std::string_view bytes, std::size_t at) {
  if (at + 4 > bytes.size()) throw std::runtime_error(fmt::format("it ends at byte {}", bytes.size()));
  uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

std::string unpack(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) throw std::runtime_error("it does not begin with 'EC02Compressed Data File'");
  const uint32_t window_size = big_endian(bytes, kWindowSizeAt), windows = big_endian(bytes, kWindowsAt);
  std::string text;
  for (uint32_t w = 0; w < windows; ++w) {
    const uint32_t begin = big_endian(bytes, kOffsetsAt + 4 * w), end = big_endian(bytes, kOffsetsAt + 4 * (w + 1));
    if (begin > end || end > bytes.size()) throw std::runtime_error(fmt::format("window {} lies outside the file", w));
    const std::string window = lzw_unpack(bytes.substr(begin, end - begin));
    if (window.size() > window_size || (window.size() < window_size && w + 1 < windows)) {
      throw std::runtime_error(
          fmt::format("window {} unpacks to {} bytes instead of {}", w, window.size(), window_size));
    }
    text += window;
  }
  return text;
}

}  // namespace

std::string read_bible(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    throw Error(fmt::format("data 'text': '{}'", path), "Debian's package bible-kjv-text, which is not installed",
                kInstall);
  }
  try {
    return unpack(read_file(path));
  } catch (const std::runtime_error& e) {
    if (dynamic_cast<const Error*>(&e)) throw;
    throw Error(fmt::format("data 'text': '{}'", path),
                fmt::format("the data file of Debian's package bible-kjv-text; in this one {}", e.what()), kInstall);
  }
}

}  // namespace hpqf::models
