// Reads a file of lines of any length of file with bounded memory.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"

namespace hpqf::observe {

struct LinesRead {
  int64_t lines = 0;     // whole lines handed over
  int64_t too_long = 0;  // left out: longer than kLongestLine
  bool torn = false;     // the file does not end in '\n'; what follows the last one was not handed over
};

inline constexpr size_t kLongestLine = size_t{1} << 20;

// Calls `use` for each whole line, without its '\n'. Memory: one line and 64 KiB. Error when the file cannot be read.
HPQF_API LinesRead for_each_line(const std::string& path, const std::function<void(std::string_view line)>& use);

}  // namespace hpqf::observe
