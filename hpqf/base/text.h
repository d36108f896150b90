// Help for error texts: which of the known names did the caller probably mean.
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

HPQF_API std::string lower(std::string_view text);  // ASCII only

}  // namespace hpqf::base
