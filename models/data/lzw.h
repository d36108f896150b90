// The LZW stream inside a Unix `compress` file.
#pragma once
#include <string>
#include <string_view>

namespace hpqf::models {

// Unpacks the codes that follow the three header bytes 1f 9d 90 (block mode, codes of 9 to 16 bits; Welch, A Technique
// for High-Performance Data Compression, 1984, as in compress(1)). Stops at the end of the input. Throws
// std::runtime_error on a code that cannot occur.
std::string lzw_unpack(std::string_view codes);

}  // namespace hpqf::models
