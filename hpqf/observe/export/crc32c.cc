#include "hpqf/observe/export/crc32c.h"

#include <array>

namespace hpqf::observe {
namespace {

constexpr std::array<uint32_t, 256> table() {
  std::array<uint32_t, 256> out{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;  // 0x1edc6f41 reflected
    out[i] = crc;
  }
  return out;
}
constexpr std::array<uint32_t, 256> kTable = table();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

}  // namespace hpqf::observe
