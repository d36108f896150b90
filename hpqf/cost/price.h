// What an hour of one device costs: a table of published prices, or the user's own.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/cost/date.h"
#include "hpqf/cost/figure.h"

namespace hpqf::cost {

enum class PriceKind : uint8_t { on_demand, spot, reserved };
HPQF_API const char* name(PriceKind kind);
HPQF_API std::optional<PriceKind> find_price_kind(std::string_view name);

struct Price {
  std::string provider, device;  // device: an id of the device database
  PriceKind kind = PriceKind::on_demand;
  double amount = 0;        // per device and hour
  std::string currency;     // ISO 4217, e.g. "USD"; never converted
  std::optional<Day> date;  // when the price held; nothing: the source does not say
  std::string source;
};

// Prices older than this are shown with a warning.
inline constexpr int64_t kPriceDays = 90;

// "" when the price is recent; else a sentence: how old it is, that its day is unknown, or that it lies in the future.
HPQF_API std::string age_warning(const Price& price, Day today);

class HPQF_API PriceTable {
 public:
  // Schema "hpqf.prices" version 1. Error with the place for unknown keys, amounts that are not above 0, currencies
  // that are not three capital letters, days that do not exist, the same offer twice.
  static PriceTable parse(std::string_view text, std::string_view where);
  static PriceTable load(const std::string& path);
  // The table that comes with hpqf: data/prices.json as it was when hpqf was built.
  static const PriceTable& published();

  const std::vector<Price>& prices() const { return prices_; }
  std::vector<Price> of(std::string_view device, PriceKind kind) const;  // cheapest first
  // The offers of `other` come first: they replace all offers of the same device and kind.
  PriceTable overridden_by(const PriceTable& other) const;

 private:
  std::vector<Price> prices_;
};

// One price to compute with, its range, and the offers it came from.
struct Offer {
  Band amount;  // lowest, median, highest: all in `currency`
  std::string currency;
  Basis basis = Basis::quoted;
  std::vector<Price> used;
  std::vector<Price> other_currencies;  // left out: nothing here knows an exchange rate
};
// Of one device and kind; when there are several currencies, that of most offers (ties: the first by name). Error when
// there is no offer, naming the kinds and devices that have one.
HPQF_API Offer offer(const PriceTable& table, std::string_view device, PriceKind kind);
HPQF_API Offer given_price(double amount, std::string currency);  // Error unless above 0

}  // namespace hpqf::cost
