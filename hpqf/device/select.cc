#include "hpqf/device/select.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "hpqf/base/text.h"

namespace hpqf::device {
namespace {

constexpr std::array kSorts = {SortBy::rate, SortBy::price, SortBy::rate_per_dollar, SortBy::rate_per_watt,
                               SortBy::memory};

std::string text_at(const Value& object, std::string_view key) {
  const Value* value = object.at(key);
  return value ? value->shown() : "";
}

std::optional<Price> hourly_price(const DeviceFacts& device) {
  const Fact* prices = device.find("economics.prices");
  if (!prices) return std::nullopt;
  std::optional<Price> lowest;
  for (const Value& entry : prices->value.items) {
    const Value* price = entry.at("price");
    if (!price || price->kind != Value::Kind::number || price->number <= 0) continue;
    if (text_at(entry, "currency") != "USD" || text_at(entry, "per").find("hour") == std::string::npos) continue;
    if (lowest && lowest->usd <= price->number) continue;
    std::vector<std::string> basis;
    for (const char* key : {"provider", "kind", "date"}) {
      if (std::string part = text_at(entry, key); !part.empty()) basis.push_back(std::move(part));
    }
    lowest = Price{price->number, fmt::format("{}", fmt::join(basis, ", "))};
  }
  return lowest;
}

std::optional<double> ranked_by(const Candidate& candidate, SortBy sort) {
  const auto rate = candidate.resolution.rate ? std::optional(candidate.resolution.rate->tera) : std::nullopt;
  const auto price = candidate.price ? std::optional(candidate.price->usd) : std::nullopt;
  const auto watts = candidate.device->number("power.tdp_w");
  switch (sort) {
    case SortBy::rate:
      return rate;
    case SortBy::price:
      return price;
    case SortBy::memory:
      return candidate.memory_gb;
    case SortBy::rate_per_dollar:
      return rate && price && *price > 0 ? std::optional(*rate / *price) : std::nullopt;
    case SortBy::rate_per_watt:
      return rate && watts && *watts > 0 ? std::optional(*rate / *watts) : std::nullopt;
  }
  return std::nullopt;
}

std::string refusal(const Candidate& candidate, const Request& request) {
  const DeviceFacts& device = *candidate.device;
  const std::string status = device.text("identity.status").value_or("");
  if (!request.announced && status == "announced") return "announced, not to be had yet";
  if (candidate.resolution.kind != Kind::native)
    return fmt::format("{}: {}", name(candidate.resolution.kind), candidate.resolution.reason);
  if (request.min_memory_gb > 0) {
    if (!candidate.memory_gb) return "its memory is not known";
    if (*candidate.memory_gb < request.min_memory_gb)
      return fmt::format("{:.6g} GB of memory, {:.6g} asked for", *candidate.memory_gb, request.min_memory_gb);
  }
  if (request.max_price) {
    if (!candidate.price) return "its price is not known";
    if (candidate.price->usd > *request.max_price)
      return fmt::format("{:.6g} USD ({}), at most {:.6g} asked for", candidate.price->usd, candidate.price->basis,
                         *request.max_price);
  }
  if (!candidate.value) return fmt::format("what {} needs is not known of it", name(request.sort));
  return "";
}

void check_limit(const char* what, double limit) {
  if (std::isfinite(limit) && limit >= 0) return;
  throw Error(fmt::format("{} {}", what, limit), "a finite number from 0", "give such a number");
}

void check_filter(const std::vector<DeviceFacts>& devices, const char* what, const char* key,
                  const std::string& wanted) {
  if (wanted.empty()) return;
  std::set<std::string> known;
  for (const DeviceFacts& device : devices) {
    if (const auto text = device.text(key)) known.insert(base::lower(*text));
  }
  if (known.count(base::lower(wanted))) return;
  throw Error(fmt::format("devices of {} \"{}\"", what, wanted), fmt::format("{}", fmt::join(known, ", ")),
              fmt::format("give a {} that is in the database", what));
}

bool is(const DeviceFacts& device, const char* key, const std::string& wanted) {
  return wanted.empty() || base::lower(device.text(key).value_or("")) == base::lower(wanted);
}

}  // namespace

std::optional<Price> price_of(const DeviceFacts& device, PriceKind kind) {
  if (kind == PriceKind::hour) return hourly_price(device);
  const auto usd = device.number("economics.list_price_usd");
  if (!usd || *usd <= 0) return std::nullopt;
  return Price{*usd, "list price, " + device.text("economics.list_price_kind").value_or("kind not known")};
}

const char* name(SortBy sort) {
  switch (sort) {
    case SortBy::rate:
      return "rate";
    case SortBy::price:
      return "price";
    case SortBy::rate_per_dollar:
      return "rate-per-dollar";
    case SortBy::rate_per_watt:
      return "rate-per-watt";
    case SortBy::memory:
      break;
  }
  return "memory";
}

SortBy parse_sort(std::string_view text) {
  std::vector<std::string> names;
  for (const SortBy sort : kSorts) {
    if (text == name(sort)) return sort;
    names.push_back(name(sort));
  }
  throw Error(fmt::format("an order by \"{}\"", text), fmt::format("{}", fmt::join(names, ", ")),
              fmt::format("for example {}", base::nearest(names, text, 1).front()));
}

Selection select(const std::vector<DeviceFacts>& devices, const AchievableFactors& factors, const Request& request) {
  check_limit("a least memory in GB of", request.min_memory_gb);
  check_limit("a highest price in USD of", request.max_price.value_or(0));
  check_filter(devices, "vendor", "identity.vendor", request.vendor);
  check_filter(devices, "kind", "identity.kind", request.kind);

  Selection out;
  for (const DeviceFacts& device : devices) {
    if (!is(device, "identity.vendor", request.vendor) || !is(device, "identity.kind", request.kind)) continue;
    Candidate candidate;
    candidate.device = &device;
    candidate.resolution = resolve(request.format, device, factors, request.resolve);
    // Where the maker of the system chooses, the largest configuration counts.
    candidate.memory_gb = device.number("memory.capacity_gb");
    if (!candidate.memory_gb) candidate.memory_gb = device.number("memory.max_gb");
    candidate.price = price_of(device, request.price);
    candidate.value = ranked_by(candidate, request.sort);
    candidate.refused = refusal(candidate, request);
    (candidate.refused.empty() ? out.ranked : out.refused).push_back(std::move(candidate));
  }
  const bool small_first = request.sort == SortBy::price;
  std::stable_sort(out.ranked.begin(), out.ranked.end(), [&](const Candidate& a, const Candidate& b) {
    if (*a.value != *b.value) return small_first ? *a.value < *b.value : *a.value > *b.value;
    return a.device->id() < b.device->id();
  });
  std::stable_sort(out.refused.begin(), out.refused.end(),
                   [](const Candidate& a, const Candidate& b) { return a.device->id() < b.device->id(); });
  return out;
}

}  // namespace hpqf::device
