#include "hpqf/cost/price.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/base/json.h"

namespace hpqf::cost {

extern const char kPublishedPrices[];  // data/prices.json

namespace {

constexpr std::array kKinds{PriceKind::on_demand, PriceKind::spot, PriceKind::reserved};

bool is_currency(std::string_view text) {
  return text.size() == 3 && std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

Price read_price(const base::Json& json, std::string_view where, size_t index) {
  const base::JsonObject object(json, fmt::format("{}: price {}", where, index));
  object.allow({"provider", "device", "kind", "per_hour", "currency", "date", "source"});
  Price price;
  price.provider = object.text("provider");
  price.device = object.text("device");
  const std::string kind = object.text("kind");
  const auto found = find_price_kind(kind);
  if (!found)
    throw Error(fmt::format("{}, key \"kind\": \"{}\"", object.place(), kind), "on_demand, spot, reserved",
                "correct the kind");
  price.kind = *found;
  price.amount = object.number("per_hour", 0);
  if (price.amount == 0)
    throw Error(fmt::format("{}, key \"per_hour\": 0", object.place()), "a price above 0", "remove it or correct it");
  price.currency = object.text("currency");
  if (!is_currency(price.currency))
    throw Error(fmt::format("{}, key \"currency\": \"{}\"", object.place(), price.currency),
                "three capital letters (ISO 4217), e.g. USD", "correct the currency");
  if (object.has("date")) {
    const std::string date = object.text("date");
    price.date = parse_day(date);
    if (!price.date)
      throw Error(fmt::format("{}, key \"date\": \"{}\"", object.place(), date),
                  "a day as 2026-12-01; leave the key out when the day is not known", "correct the date");
  }
  price.source = object.text("source");
  if (price.source.empty())
    throw Error(fmt::format("{}, key \"source\": \"\"", object.place()), "where the price was read",
                "name the page or file");
  return price;
}

}  // namespace

const char* name(PriceKind kind) {
  switch (kind) {
    case PriceKind::on_demand:
      return "on_demand";
    case PriceKind::spot:
      return "spot";
    case PriceKind::reserved:
      return "reserved";
  }
  return "";
}

std::optional<PriceKind> find_price_kind(std::string_view text) {
  for (const PriceKind kind : kKinds)
    if (text == name(kind)) return kind;
  return std::nullopt;
}

std::string age_warning(const Price& p, Day today) {
  if (!p.date) return fmt::format("the price of {} at {} has no date", p.device, p.provider);
  const int64_t days = days_between(*p.date, today);
  if (days < 0)
    return fmt::format("the price of {} at {} is of {}, after today", p.device, p.provider, to_string(*p.date));
  if (days <= kPriceDays) return "";
  return fmt::format("the price of {} at {} is {} days old ({})", p.device, p.provider, days, to_string(*p.date));
}

PriceTable PriceTable::parse(std::string_view text, std::string_view where) {
  const base::Json json = base::parse_json(text, where);
  const base::JsonObject root(json, std::string(where));
  root.check_schema("hpqf.prices", 1);
  root.allow({"schema", "version", "note", "prices"});
  PriceTable table;
  std::set<std::tuple<std::string, std::string, PriceKind>> seen;
  const base::Json& prices = root.array("prices");
  for (size_t i = 0; i < prices.size(); ++i) {
    Price price = read_price(prices[i], where, i);
    if (!seen.insert({price.provider, price.device, price.kind}).second)
      throw Error(
          fmt::format("{}: price {}: {} {} at {} twice", where, i, price.device, name(price.kind), price.provider),
          "one price for each provider, device and kind", "remove one of the two");
    table.prices_.push_back(std::move(price));
  }
  return table;
}

PriceTable PriceTable::load(const std::string& path) { return parse(base::read_file(path), path); }

const PriceTable& PriceTable::published() {
  static const PriceTable table = parse(kPublishedPrices, "data/prices.json");
  return table;
}

std::vector<Price> PriceTable::of(std::string_view device, PriceKind kind) const {
  std::vector<Price> found;
  for (const Price& price : prices_)
    if (price.device == device && price.kind == kind) found.push_back(price);
  std::stable_sort(found.begin(), found.end(), [](const Price& a, const Price& b) { return a.amount < b.amount; });
  return found;
}

PriceTable PriceTable::overridden_by(const PriceTable& other) const {
  PriceTable table = other;
  for (const Price& price : prices_)
    if (other.of(price.device, price.kind).empty()) table.prices_.push_back(price);
  return table;
}

Offer offer(const PriceTable& table, std::string_view device, PriceKind kind) {
  const std::vector<Price> all = table.of(device, kind);
  if (all.empty()) {
    std::set<std::string> others;
    for (const Price& price : table.prices())
      if (price.device == device) others.insert(name(price.kind));
    std::set<std::string> devices;
    for (const Price& price : table.prices())
      if (price.kind == kind) devices.insert(price.device);
    throw Error(fmt::format("the {} price of {}", name(kind), device),
                others.empty() ? fmt::format("a device with such a price: {}", fmt::join(devices, ", "))
                               : fmt::format("for this device: {}", fmt::join(others, ", ")),
                "give your own price: --price AMOUNT for an hour of one device, or --prices FILE");
  }
  std::map<std::string, size_t> currencies;
  for (const Price& price : all) ++currencies[price.currency];
  const auto most = std::max_element(currencies.begin(), currencies.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  Offer result;
  result.currency = most->first;
  for (const Price& price : all)
    (price.currency == result.currency ? result.used : result.other_currencies).push_back(price);
  const size_t n = result.used.size();
  const double middle = (result.used[(n - 1) / 2].amount + result.used[n / 2].amount) / 2;
  result.amount = {result.used.front().amount, middle, result.used.back().amount};
  return result;
}

Offer given_price(double amount, std::string currency) {
  if (!(amount > 0) || !std::isfinite(amount))
    throw Error(fmt::format("a price of {} an hour", amount), "a number above 0, for one device and hour",
                "correct --price");
  if (!is_currency(currency))
    throw Error(fmt::format("currency '{}'", currency), "three capital letters (ISO 4217), e.g. USD",
                "correct --currency");
  return {{amount, amount, amount}, std::move(currency), Basis::given, {}, {}};
}

}  // namespace hpqf::cost
