#include "hpqf/cost/price.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hpqf/base/error.h"

namespace hpqf::cost {
namespace {

Day day(const char* text) { return *parse_day(text); }

std::string table(const std::string& prices) {
  return fmt::format(R"({{"schema": "hpqf.prices", "version": 1, "prices": [{}]}})", prices);
}

std::string entry(const char* provider, const char* device, double amount, const char* currency = "USD",
                  const char* kind = "on_demand") {
  return fmt::format(R"({{"provider": "{}", "device": "{}", "kind": "{}", "per_hour": {}, "currency": "{}",
                          "date": "2026-01-31", "source": "a page"}})",
                     provider, device, kind, amount, currency);
}

std::string refusal(const std::string& text) {
  try {
    PriceTable::parse(text, "prices.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Date, ParsesDaysThatExist) {
  EXPECT_EQ(to_string(day("2024-02-29")), "2024-02-29");
  for (const char* text :
       {"2026-02-29", "2026-13-01", "2026-1-01", "2026-01-00", "yesterday", "", "2026/01/01", "-001-01-01"})
    EXPECT_FALSE(parse_day(text)) << text;
  EXPECT_EQ(days_between(day("2026-01-31"), day("2026-03-01")), 29);
}

TEST(Price, OldAndUndatedPricesAreWarnedOf) {
  Price price{.provider = "Cloud", .device = "gpu", .amount = 1, .currency = "USD", .date = day("2026-01-01")};
  EXPECT_EQ(age_warning(price, day("2026-04-01")), "");  // 90 days
  EXPECT_NE(age_warning(price, day("2026-04-02")).find("91 days old"), std::string::npos);
  EXPECT_NE(age_warning(price, day("2025-12-31")).find("after today"), std::string::npos);
  price.date.reset();
  EXPECT_NE(age_warning(price, day("2026-01-01")).find("no date"), std::string::npos);
}

TEST(Price, OfferIsMedianAndRangeInOneCurrency) {
  const PriceTable prices =
      PriceTable::parse(table(entry("A", "gpu", 4) + "," + entry("B", "gpu", 1) + "," + entry("C", "gpu", 2) + "," +
                              entry("D", "gpu", 3, "EUR") + "," + entry("E", "gpu", 9, "USD", "spot")),
                        "t");
  const Offer found = offer(prices, "gpu", PriceKind::on_demand);
  EXPECT_EQ(found.amount.low, 1);
  EXPECT_EQ(found.amount.mid, 2);
  EXPECT_EQ(found.amount.high, 4);
  EXPECT_EQ(found.currency, "USD");
  ASSERT_EQ(found.other_currencies.size(), 1u);
  EXPECT_EQ(found.other_currencies[0].amount, 3);  // as it is: nothing converts it
  EXPECT_EQ(offer(prices, "gpu", PriceKind::spot).amount.mid, 9);
  EXPECT_THROW(offer(prices, "gpu", PriceKind::reserved), Error);
  EXPECT_THROW(offer(prices, "tpu", PriceKind::on_demand), Error);
}

TEST(Price, UsersTableReplacesThatDeviceAndKind) {
  const PriceTable published = PriceTable::parse(table(entry("A", "gpu", 4) + "," + entry("A", "cpu", 1)), "t");
  const PriceTable own = PriceTable::parse(table(entry("B", "gpu", 2, "EUR")), "own");
  const PriceTable both = published.overridden_by(own);
  EXPECT_EQ(offer(both, "gpu", PriceKind::on_demand).currency, "EUR");
  EXPECT_EQ(offer(both, "gpu", PriceKind::on_demand).amount.high, 2);
  EXPECT_EQ(offer(both, "cpu", PriceKind::on_demand).amount.mid, 1);
}

TEST(Price, MistakesAreNamedWithTheirPlace) {
  EXPECT_NE(refusal(table(entry("A", "gpu", 0))).find("above 0"), std::string::npos);
  EXPECT_NE(refusal(table(entry("A", "gpu", -1))).find("prices.json: price 0"), std::string::npos);
  EXPECT_NE(refusal(table(entry("A", "gpu", 1, "dollars"))).find("ISO 4217"), std::string::npos);
  EXPECT_NE(refusal(table(entry("A", "gpu", 1, "USD", "hourly"))).find("on_demand, spot, reserved"), std::string::npos);
  EXPECT_NE(refusal(table(entry("A", "gpu", 1) + "," + entry("A", "gpu", 2))).find("twice"), std::string::npos);
  EXPECT_NE(refusal(R"({"schema": "hpqf.plan", "version": 1})").find("another kind of file"), std::string::npos);
  EXPECT_NE(refusal(R"({"schema": "hpqf.prices", "version": 1, "prices": [{"provider": "A"}]})").find("\"device\""),
            std::string::npos);
  EXPECT_NE(refusal(R"({"schema": "hpqf.prices", "version": 1, "pri)").find("truncated"), std::string::npos);
  std::string bad_day = table(entry("A", "gpu", 1));
  bad_day.replace(bad_day.find("2026-01-31"), 10, "2026-02-31");
  EXPECT_NE(refusal(bad_day).find("2026-12-01"), std::string::npos);
}

TEST(Price, PublishedTableHoldsSourcedPrices) {
  const PriceTable& table = PriceTable::published();
  EXPECT_GE(table.prices().size(), 20u);
  for (const Price& price : table.prices()) EXPECT_GT(price.source.size(), 10u) << price.device;
  const Offer h100 = offer(table, "nvidia-h100-sxm", PriceKind::on_demand);
  EXPECT_LT(h100.amount.low, h100.amount.high);
}

TEST(Price, GivenPrice) {
  EXPECT_EQ(given_price(2.1, "EUR").amount.mid, 2.1);
  EXPECT_EQ(given_price(2.1, "EUR").basis, Basis::given);
  EXPECT_THROW(given_price(0, "USD"), Error);
  EXPECT_THROW(given_price(1, "usd"), Error);
}

}  // namespace
}  // namespace hpqf::cost
