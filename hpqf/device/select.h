// Which devices would run a format best, and why the others are left out. Pure functions on facts.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/database.h"
#include "hpqf/device/resolve.h"

namespace hpqf::device {

enum class PriceKind : uint8_t { device, hour };  // to buy one, to rent one for an hour
struct Price {
  double usd = 0;
  std::string basis;  // "list price, msrp" or "aws, on_demand, 2026-01": quoted, never measured
};
// The list price, or the lowest hourly price in US dollars of economics.prices; nullopt: none is recorded.
HPQF_API std::optional<Price> price_of(const DeviceFacts& device, PriceKind kind);

enum class SortBy : uint8_t { rate, price, rate_per_dollar, rate_per_watt, memory };
HPQF_API SortBy parse_sort(std::string_view name);  // Error with the names
HPQF_API const char* name(SortBy sort);

struct Request {
  Format format = Format::bf16;
  double min_memory_gb = 0;
  std::optional<double> max_price;
  PriceKind price = PriceKind::device;
  SortBy sort = SortBy::rate;
  std::string vendor;      // "" for any
  std::string kind;        // identity.kind; "" for any
  bool announced = false;  // also devices that cannot be had yet
  ResolveOptions resolve;
};

struct Candidate {
  const DeviceFacts* device = nullptr;
  Resolution resolution;
  std::optional<double> memory_gb;
  std::optional<Price> price;
  std::optional<double> value;  // what it is ranked by
  std::string refused;          // "" for a ranked device
};

struct Selection {
  std::vector<Candidate> ranked;   // best first; equal ones by id
  std::vector<Candidate> refused;  // by id; those of another vendor or kind than asked for are not named
};

// `devices` outlives the result. Error when a limit is negative or not finite, or no device is of the vendor or kind.
HPQF_API Selection select(const std::vector<DeviceFacts>& devices, const AchievableFactors& factors,
                          const Request& request);

}  // namespace hpqf::device
