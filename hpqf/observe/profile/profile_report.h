// What a profiled stretch of a run did: the audit's sums, read against time and against what the device could do.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"
#include "hpqf/observe/profile/rate_table.h"

namespace hpqf::observe {

// The format in which the multiplications of a row were really done: fp32 when it was emulated, else that of the wider
// operand. A bf16 request that ran as rounding plus fp32 GEMM computes in fp32.
HPQF_API Format arithmetic(const AuditRow& row);

struct ArithmeticShare {
  Format format = Format::fp32;
  double flops = 0, seconds = 0;             // sums
  double share_of_flops = 0;                 // of all counted FLOPs, 0 to 1
  double share_of_time = 0;                  // of all counted time
  std::optional<double> achieved_over_peak;  // flops / seconds over the peak; unset: peak unknown or no time
};

// U = sum over formats (F / P) / T: the part of the time that the arithmetic would take at peak. Equals MFU when all is
// in one format, and falls when a layer is emulated, because its work then counts at the peak of fp32.
struct Utilisation {
  std::optional<double> u;      // unset: a peak is unknown, or no time was taken
  std::optional<double> mfu;    // all FLOPs over the peak of `base`: over 1 is possible, U never is
  Format base = Format::fp32;   // bf16 when its peak is known, as usual for MFU; else fp32
  double flops_per_second = 0;  // achieved over the wall time
  std::vector<Format> unknown;  // formats that computed something and whose peak is unknown
};

// One point of a roofline chart, a layer's op and pass.
struct RooflinePoint {
  std::string layer, op;
  Pass pass = Pass::forward;
  Format format = Format::fp32;      // of the arithmetic
  double intensity = 0;              // FLOP per byte of operands and result as stored
  double achieved = 0;               // FLOP/s over the op's own time
  std::optional<double> attainable;  // min(peak, intensity * bandwidth); unset: one of them is unknown
  bool memory_bound = false;         // the bandwidth is the lower roof; meaningless without `attainable`
};

struct HPQF_API ProfileReport {
  AuditReport audit;  // rows, uncounted ops; total_seconds and steps are those of the profile
  RateTable rates;
  int64_t nonfinite_casts = 0, overflowing_casts = 0;  // operands rounded that met trouble

  std::vector<ArithmeticShare> shares() const;  // most FLOPs first; ops without GEMM enter the time of fp32
  double low_precision_flops() const;           // share whose arithmetic was narrower than tf32, 0 to 1
  double low_precision_time() const;
  Utilisation utilisation() const;
  std::vector<RooflinePoint> roofline() const;  // rows with FLOPs and bytes
  std::string table(int max_rows = 0) const;    // per layer, op and pass; then summary()
  std::string summary() const;
  std::string to_json(int indent = 1) const;  // schema "hpqf.profile" version 1
};

}  // namespace hpqf::observe
