// The text of Debian's package bible-kjv-text: 4.4 MB of English in the public domain, one verse a line.
#pragma once
#include <string>
#include <string_view>

namespace hpqf::models {

inline constexpr const char* kBiblePath = "/usr/lib/bible.data";

// Unpacks that package's data file: "EC02Compressed Data File", zeros to byte 0x54, then big-endian uint32: window
// size, number of windows, the offset of each window and of the end; three bytes of compress(1) header; the windows,
// each an LZW stream of its own. Error naming `path` when the file is missing or anything else.
std::string read_bible(const std::string& path = kBiblePath);

}  // namespace hpqf::models
