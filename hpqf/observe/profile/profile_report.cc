#include "hpqf/observe/profile/profile_report.h"

#include <algorithm>
#include <map>

namespace hpqf::observe {
namespace {

double over(double part, double whole) { return whole > 0 ? part / whole : 0; }

bool is_low(Format format) { return formats::info(format).bits < formats::info(Format::tf32).bits; }

}  // namespace

Format arithmetic(const AuditRow& row) {
  if (row.implementation.starts_with("emulated")) return Format::fp32;
  const Format a = formats::parse_block_format(row.effective_a).format,
               b = formats::parse_block_format(row.effective_b).format;
  return formats::info(b).bits > formats::info(a).bits ? b : a;
}

std::vector<ArithmeticShare> ProfileReport::shares() const {
  std::map<Format, ArithmeticShare> sums;
  for (const AuditRow& row : audit.rows) {
    ArithmeticShare& sum = sums[arithmetic(row)];
    sum.flops += row.flops;
    sum.seconds += row.seconds;
  }
  // The rate in a format is that of its products: time of ops without FLOPs is not their fault.
  std::map<Format, double> gemm_seconds;
  for (const AuditRow& row : audit.rows)
    if (row.flops > 0) gemm_seconds[arithmetic(row)] += row.seconds;
  const double flops = audit.counted_flops(), seconds = audit.counted_seconds();
  std::vector<ArithmeticShare> shares;
  for (auto& [format, sum] : sums) {
    sum.format = format;
    sum.share_of_flops = over(sum.flops, flops);
    sum.share_of_time = over(sum.seconds, seconds);
    const PeakRate* peak = rates.find(format);
    if (peak && gemm_seconds[format] > 0) sum.achieved_over_peak = sum.flops / gemm_seconds[format] / peak->per_second;
    shares.push_back(sum);
  }
  std::ranges::stable_sort(shares, [](const auto& a, const auto& b) { return a.flops > b.flops; });
  return shares;
}

double ProfileReport::low_precision_flops() const {
  double sum = 0;
  for (const ArithmeticShare& share : shares()) sum += is_low(share.format) ? share.share_of_flops : 0;
  return sum;
}

double ProfileReport::low_precision_time() const {
  double sum = 0;
  for (const ArithmeticShare& share : shares()) sum += is_low(share.format) ? share.share_of_time : 0;
  return sum;
}

Utilisation ProfileReport::utilisation() const {
  Utilisation result;
  result.base = rates.find(Format::bf16) ? Format::bf16 : Format::fp32;
  const double seconds = audit.total_seconds, flops = audit.counted_flops();
  result.flops_per_second = over(flops, seconds);
  double at_peak = 0;  // seconds
  for (const ArithmeticShare& share : shares()) {
    if (share.flops == 0) continue;
    if (const PeakRate* peak = rates.find(share.format)) {
      at_peak += share.flops / peak->per_second;
    } else {
      result.unknown.push_back(share.format);
    }
  }
  if (seconds <= 0) return result;
  if (result.unknown.empty()) result.u = at_peak / seconds;
  if (const PeakRate* peak = rates.find(result.base)) result.mfu = flops / peak->per_second / seconds;
  return result;
}

std::vector<RooflinePoint> ProfileReport::roofline() const {
  std::vector<RooflinePoint> points;
  for (const AuditRow& row : audit.rows) {
    if (row.flops <= 0 || row.bytes <= 0) continue;
    RooflinePoint point;
    point.layer = row.layer;
    point.op = row.op;
    point.pass = row.pass;
    point.format = arithmetic(row);
    point.intensity = row.flops / row.bytes;
    point.achieved = over(row.flops, row.seconds);
    const PeakRate* peak = rates.find(point.format);
    if (peak && rates.bandwidth) {
      const double memory = point.intensity * rates.bandwidth->per_second;
      point.memory_bound = memory < peak->per_second;
      point.attainable = std::min(memory, peak->per_second);
    }
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace hpqf::observe
