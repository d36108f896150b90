// Calendar days, for the age of prices. Today's date is always an argument: what reads the clock is the command line.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"

namespace hpqf::cost {

using Day = std::chrono::sys_days;
HPQF_API std::optional<Day> parse_day(std::string_view text);  // "2026-12-01"; nothing for a day that does not exist
HPQF_API std::string to_string(Day day);
inline int64_t days_between(Day from, Day to) { return (to - from).count(); }

}  // namespace hpqf::cost
