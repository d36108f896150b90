// What a device can do at best: operations per second in each format, and bytes per second. A value that somebody
// measured or looked up; a format that is not in it is unknown, and everything derived from it says so.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/formats/format.h"

namespace hpqf::observe {

struct PeakRate {
  double per_second = 0;  // operations, 2 for a multiply-add; or bytes
  std::string basis;      // "measured" or "quoted"
  std::string source;     // "fp32 matmul 1024x1024x1024 on this machine", "vendor's sheet, 2024-03"
  bool operator==(const PeakRate&) const = default;
};

struct HPQF_API RateTable {
  std::string device;                 // for people; "" when unknown
  std::map<Format, PeakRate> peaks;   // dense matrix products
  std::optional<PeakRate> bandwidth;  // bytes per second of main memory
  const PeakRate* find(Format format) const;

  // Schema "hpqf.rates" version 1: {"device", "peaks": {"fp32": {"per_second", "basis", "source"}}, "bandwidth"}.
  std::string to_json(int indent = 1) const;
  static RateTable from_json(std::string_view text, std::string_view where = "rates");  // Error with the place
  bool operator==(const RateTable&) const = default;
};

}  // namespace hpqf::observe
