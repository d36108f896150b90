// Sums over an AuditReport.
#include <algorithm>

#include "hpqf/observe/audit.h"

namespace hpqf::observe {
namespace {

// The operand with fewer bits decides what a GEMM is called; input bf16 x weight fp32 counts as bf16.
Format low_operand(const AuditRow& row) {
  const Format a = formats::parse_block_format(row.effective_a).format,
               b = formats::parse_block_format(row.effective_b).format;
  return formats::info(b).bits < formats::info(a).bits ? b : a;
}

}  // namespace

double AuditReport::counted_flops() const {
  double sum = 0;
  for (const AuditRow& row : rows) sum += row.flops;
  return sum;
}

double AuditReport::counted_seconds() const {
  double sum = 0;
  for (const AuditRow& row : rows) sum += row.seconds;
  return sum;
}

double AuditReport::base_seconds() const { return total_seconds > 0 ? total_seconds : counted_seconds(); }

std::vector<AuditReport::Share> AuditReport::shares() const {
  std::vector<Share> shares;
  for (const AuditRow& row : rows) {
    const std::string format = formats::name(low_operand(row));
    const bool emulated = row.implementation.starts_with("emulated");
    auto it = std::find_if(shares.begin(), shares.end(),
                           [&](const Share& s) { return s.format == format && s.emulated == emulated; });
    if (it == shares.end()) it = shares.insert(it, {format, emulated, 0, 0});
    it->flops += row.flops;
    it->seconds += row.seconds;
  }
  const double flops = counted_flops(), seconds = counted_seconds();
  for (Share& share : shares) {
    if (flops > 0) share.flops /= flops;
    if (seconds > 0) share.seconds /= seconds;
  }
  std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return a.flops != b.flops ? a.flops > b.flops : a.seconds > b.seconds;
  });
  return shares;
}

}  // namespace hpqf::observe
