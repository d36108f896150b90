// The audits of two parts of one run as one.
#include <algorithm>
#include <map>
#include <tuple>

#include "hpqf/observe/audit.h"

namespace hpqf::observe {
namespace {

auto content(const AuditRow& row) {
  return std::tie(row.layer, row.op, row.pass, row.requested_a, row.requested_b, row.effective_a, row.effective_b,
                  row.implementation, row.reason);
}

struct ByContent {
  bool operator()(const AuditRow* a, const AuditRow* b) const { return content(*a) < content(*b); }
};

// Rows stay grouped by layer: a row that only `later` has goes behind the last one of its layer.
std::vector<AuditRow> merged_rows(std::vector<AuditRow> rows, const std::vector<AuditRow>& later) {
  std::vector<const AuditRow*> added;
  {
    std::map<const AuditRow*, AuditRow*, ByContent> known;
    for (AuditRow& row : rows) known.emplace(&row, &row);
    for (const AuditRow& row : later) {
      const auto found = known.find(&row);
      if (found == known.end()) {
        added.push_back(&row);
        continue;
      }
      AuditRow& sum = *found->second;
      sum.calls += row.calls;
      sum.flops += row.flops;
      sum.bytes += row.bytes;
      sum.seconds += row.seconds;
    }
  }
  for (const AuditRow* row : added) {
    const auto last =
        std::find_if(rows.rbegin(), rows.rend(), [&](const AuditRow& other) { return other.layer == row->layer; });
    rows.insert(last == rows.rend() ? rows.end() : last.base(), *row);
  }
  return rows;
}

}  // namespace

AuditReport merged(AuditReport earlier, const AuditReport& later) {
  earlier.rows = merged_rows(std::move(earlier.rows), later.rows);
  // Shares are means over sampled steps, and an op that is missing in one part had none there.
  const double samples = static_cast<double>(earlier.sampled_steps + later.sampled_steps);
  const auto weight = [&](const AuditReport& part) {
    return samples > 0 ? static_cast<double>(part.sampled_steps) / samples : 0.0;
  };
  const double before = weight(earlier), after = weight(later);
  for (UncountedOp& op : earlier.uncounted) op.share_of_time *= before;
  for (const UncountedOp& op : later.uncounted) {
    const auto found = std::find_if(earlier.uncounted.begin(), earlier.uncounted.end(),
                                    [&](const UncountedOp& other) { return other.op == op.op; });
    UncountedOp& sum = found != earlier.uncounted.end() ? *found : earlier.uncounted.emplace_back(UncountedOp{op.op});
    sum.share_of_time += op.share_of_time * after;
    sum.calls += op.calls;
  }
  earlier.sampled_steps += later.sampled_steps;
  earlier.steps += later.steps;
  earlier.total_seconds += later.total_seconds;
  return earlier;
}

}  // namespace hpqf::observe
