// AuditReport as text.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "hpqf/observe/audit.h"
#include "hpqf/observe/human.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::observe {
namespace {

std::string pair_text(const std::string& a, const std::string& b) { return a == b ? a : a + "/" + b; }

std::string share_text(double part, double whole) { return whole > 0 ? percent(part / whole) : "-"; }

// Indices of the rows that took longest (FLOPs decide where no time was taken), back in table order.
std::vector<size_t> longest_rows(const std::vector<AuditRow>& rows, int max_rows) {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (max_rows <= 0 || rows.size() <= static_cast<size_t>(max_rows)) return order;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return rows[a].seconds != rows[b].seconds ? rows[a].seconds > rows[b].seconds : rows[a].flops > rows[b].flops;
  });
  order.resize(static_cast<size_t>(max_rows));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

std::string AuditReport::table(int max_rows) const {
  TextTable table({{"layer"},
                   {"op"},
                   {"pass"},
                   {"requested"},
                   {"effective"},
                   {"implementation"},
                   {"FLOPs %", true},
                   {"time %", true},
                   {"reason"}});
  Footnotes notes;
  const double flops = counted_flops(), seconds = base_seconds();
  double shown_flops = 0, shown_seconds = 0;
  const std::vector<size_t> shown = longest_rows(rows, max_rows);
  const std::string* last_layer = nullptr;
  for (size_t i : shown) {
    const AuditRow& row = rows[i];
    const bool same = last_layer && *last_layer == row.layer;
    last_layer = &row.layer;
    table.add({same                ? ""
               : row.layer.empty() ? "(model)"
                                   : row.layer,
               row.op, name(row.pass), pair_text(row.requested_a, row.requested_b),
               pair_text(row.effective_a, row.effective_b), row.implementation,
               row.flops > 0 ? share_text(row.flops, flops) : "-", share_text(row.seconds, seconds),
               notes.cell(row.reason)});
    shown_flops += row.flops;
    shown_seconds += row.seconds;
  }
  if (shown.size() < rows.size())
    table.add({fmt::format("({} more rows)", rows.size() - shown.size()), "", "", "", "", "",
               share_text(flops - shown_flops, flops), share_text(counted_seconds() - shown_seconds, seconds), ""});
  std::string text = table.text();
  if (const std::string foot = notes.text(); !foot.empty()) text += '\n' + foot;
  return text + '\n' + totals();
}

std::string AuditReport::totals() const {
  const double flops = counted_flops(), counted = counted_seconds(), base = base_seconds();
  std::string text = fmt::format("{} in GEMMs", human_flops(flops));
  if (steps > 0) text += fmt::format(", {} step{}", steps, steps == 1 ? "" : "s");
  if (total_seconds > 0)
    text += fmt::format(", {} wall time; the ops above took {} of it ({} %)", human_seconds(total_seconds),
                        human_seconds(counted), percent(counted / total_seconds));
  else
    text += fmt::format(", {} in the ops above; time % is of that", human_seconds(counted));
  text += "\n\n";

  TextTable table({{"format"}, {"arithmetic"}, {"FLOPs %", true}, {"time %", true}});
  for (const Share& share : shares())
    table.add({share.format, share.emulated ? "emulated" : "native", percent(share.flops),
               share_text(share.seconds * counted, base)});
  text += table.text();
  if (uncounted.empty()) return text;

  std::vector<UncountedOp> ops = uncounted;
  std::stable_sort(ops.begin(), ops.end(),
                   [](const UncountedOp& a, const UncountedOp& b) { return a.share_of_time > b.share_of_time; });
  constexpr size_t kListed = 8;
  double sum = 0;
  std::string list;
  for (size_t i = 0; i < ops.size(); ++i) {
    sum += ops[i].share_of_time;
    if (i < kListed) list += fmt::format("{}{} {}", i ? ", " : "", ops[i].op, percent(ops[i].share_of_time));
  }
  if (ops.size() > kListed) list += fmt::format(", {} more", ops.size() - kListed);
  return text +
         fmt::format("\nops that no plan governs, in sampled steps: {} % of the time ({})\n", percent(sum), list);
}

}  // namespace hpqf::observe
