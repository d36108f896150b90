#include "hpqf/cost/date.h"

#include <fmt/format.h>

#include <charconv>

namespace hpqf::cost {
namespace {

std::optional<int> number(std::string_view digits) {
  int value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Day> parse_day(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto y = number(text.substr(0, 4)), m = number(text.substr(5, 2)), d = number(text.substr(8, 2));
  if (!y || !m || !d) return std::nullopt;
  const std::chrono::year_month_day day{std::chrono::year(*y), std::chrono::month(*m), std::chrono::day(*d)};
  if (!day.ok()) return std::nullopt;
  return Day(day);
}

std::string to_string(Day day) {
  const std::chrono::year_month_day d(day);
  return fmt::format("{:04}-{:02}-{:02}", int(d.year()), unsigned(d.month()), unsigned(d.day()));
}

}  // namespace hpqf::cost
