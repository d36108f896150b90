// CRC-32C (Castagnoli polynomial, RFC 3720 B.4), and the masked form that TFRecord files hold.
#pragma once
#include <cstdint>
#include <string_view>

#include "hpqf/base/export.h"

namespace hpqf::observe {

HPQF_API uint32_t crc32c(std::string_view bytes);

// TFRecord stores checksums rotated and shifted, so that a record of a record does not check itself.
inline uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace hpqf::observe
