// ProfileReport for people.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "hpqf/observe/human.h"
#include "hpqf/observe/profile/profile_report.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::observe {
namespace {

std::string pair_text(const std::string& a, const std::string& b) { return a == b ? a : a + "/" + b; }
std::string rate_text(double flops_per_second) { return human_flops(flops_per_second) + "/s"; }
std::string part(double value, double whole) { return whole > 0 ? percent(value / whole) : "-"; }
std::string or_unknown(const std::optional<double>& share) { return share ? percent(*share) + " %" : "unknown"; }

std::vector<size_t> longest(const std::vector<AuditRow>& rows, int max_rows) {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (max_rows <= 0 || rows.size() <= static_cast<size_t>(max_rows)) return order;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return rows[a].seconds > rows[b].seconds; });
  order.resize(static_cast<size_t>(max_rows));
  std::ranges::sort(order);
  return order;
}

std::string names(const std::vector<Format>& list) {
  std::string text;
  for (Format format : list) text += (text.empty() ? "" : ", ") + std::string(formats::name(format));
  return text;
}

}  // namespace

std::string ProfileReport::table(int max_rows) const {
  TextTable table({{"layer"},
                   {"op"},
                   {"pass"},
                   {"requested"},
                   {"effective"},
                   {"computed in"},
                   {"implementation"},
                   {"calls", true},
                   {"FLOPs", true},
                   {"bytes", true},
                   {"time", true},
                   {"time %", true},
                   {"FLOP/s", true}});
  const std::vector<size_t> shown = longest(audit.rows, max_rows);
  for (size_t i : shown) {
    const AuditRow& row = audit.rows[i];
    table.add({row.layer.empty() ? "(model)" : row.layer, row.op, name(row.pass),
               pair_text(row.requested_a, row.requested_b), pair_text(row.effective_a, row.effective_b),
               formats::name(arithmetic(row)), row.implementation, fmt::format("{}", row.calls),
               row.flops > 0 ? human_flops(row.flops) : "-", row.bytes > 0 ? human_bytes(row.bytes) : "-",
               human_seconds(row.seconds), part(row.seconds, audit.base_seconds()),
               row.flops > 0 && row.seconds > 0 ? rate_text(row.flops / row.seconds) : "-"});
  }
  std::string text = table.text();
  if (shown.size() < audit.rows.size())
    text += fmt::format("... and {} rows that took less time\n", audit.rows.size() - shown.size());
  return text + '\n' + summary();
}

std::string ProfileReport::summary() const {
  const double seconds = audit.total_seconds;
  std::string text =
      fmt::format("{} in {} measured, {} of it in counted ops", human_flops(audit.counted_flops()),
                  human_seconds(seconds), seconds > 0 ? percent(audit.counted_seconds() / seconds) + " %" : "-");
  if (audit.steps > 0) text += fmt::format("; {} step{}", audit.steps, audit.steps == 1 ? "" : "s");
  text += fmt::format("\ncomputed in low precision: {} % of the FLOPs, {} % of the counted time\n",
                      percent(low_precision_flops()), percent(low_precision_time()));
  for (const ArithmeticShare& s : shares()) {
    text += fmt::format("  {:<9} {:>5} % of FLOPs, {:>5} % of time", formats::name(s.format), percent(s.share_of_flops),
                        percent(s.share_of_time));
    const PeakRate* peak = rates.find(s.format);
    if (s.flops > 0)
      text += peak ? fmt::format("; {} of its peak {} ({}: {})", or_unknown(s.achieved_over_peak),
                                 rate_text(peak->per_second), peak->basis, peak->source)
                   : "; peak unknown";
    text += '\n';
  }
  const Utilisation use = utilisation();
  text += fmt::format("achieved {}; utilisation U {}", rate_text(use.flops_per_second), or_unknown(use.u));
  if (!use.unknown.empty()) text += fmt::format(" (no peak for {})", names(use.unknown));
  text += fmt::format("; MFU against {} {}\n", formats::name(use.base), or_unknown(use.mfu));
  if (!audit.uncounted.empty()) {
    double total = 0;
    std::string list;
    int listed = 0;
    std::vector<UncountedOp> ops = audit.uncounted;
    std::ranges::stable_sort(ops, [](const auto& a, const auto& b) { return a.share_of_time > b.share_of_time; });
    for (const UncountedOp& op : ops) {
      total += op.share_of_time;
      if (++listed <= 8) list += fmt::format("{}{} {} %", list.empty() ? "" : ", ", op.op, percent(op.share_of_time));
    }
    text += fmt::format("not counted (no GEMM, outside of the plan): {} % of the time: {}{}\n", percent(total), list,
                        listed > 8 ? fmt::format(", {} more", listed - 8) : "");
  }
  if (nonfinite_casts + overflowing_casts > 0)
    text +=
        fmt::format("casts: {} met values that were not finite, {} overflowed\n", nonfinite_casts, overflowing_casts);
  return text;
}

}  // namespace hpqf::observe
