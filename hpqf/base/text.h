// Names and patterns: globs, and which of the known names the caller of an error probably meant.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::base {

// Levenshtein distance in bytes: insertions, deletions and substitutions. O(|a| |b|) time, O(|b|) memory.
HPQF_API size_t edit_distance(std::string_view a, std::string_view b);

// At most `count` of `names`, nearest to `wanted` first (upper and lower case alike; ties keep the order of `names`).
HPQF_API std::vector<std::string> nearest(std::span<const std::string> names, std::string_view wanted,
                                          size_t count = 3);

// Does all of `text` match? "*" stands for any run of characters, "?" for one.
HPQF_API bool glob(std::string_view pattern, std::string_view text);

HPQF_API std::string lower(std::string_view text);  // ASCII only

}  // namespace hpqf::base
