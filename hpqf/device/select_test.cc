#include "hpqf/device/select.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hpqf/device/fixture_test.h"

namespace hpqf::device {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

Facts gpu(const std::string& id, double bf16, double memory, double price, double watts) {
  Facts facts(id);
  facts.text("identity.vendor", "nvidia").text("identity.kind", "gpu").number("peak.fp32.dense", 10);
  facts.number("peak.bf16.dense", bf16).flag("support.bf16.matmul", true).number("memory.capacity_gb", memory);
  if (price > 0) facts.number("economics.list_price_usd", price);
  return facts.number("power.tdp_w", watts);
}

std::vector<DeviceFacts> market() {
  return {gpu("a", 100, 24, 1000, 100),
          gpu("b", 400, 80, 10000, 500),
          gpu("c", 300, 48, 0, 200),
          gpu("d", 12, 64, 500, 50).flag("support.bf16.matmul", false).flag("peak.bf16.emulated", true),
          gpu("e", 900, 288, 30000, 1400).text("identity.status", "announced"),
          gpu("f", 50, 512, 3000, 60).text("identity.vendor", "apple").text("identity.kind", "soc")};
}

std::vector<std::string> ids(const std::vector<Candidate>& candidates) {
  std::vector<std::string> out;
  for (const Candidate& candidate : candidates) out.push_back(candidate.device->id());
  return out;
}
using Ids = std::vector<std::string>;

std::string why(const Selection& selection, const std::string& id) {
  for (const Candidate& candidate : selection.refused) {
    if (candidate.device->id() == id) return candidate.refused;
  }
  return "not refused";
}

TEST(Select, RanksByWhatIsAsked) {
  const auto devices = market();
  EXPECT_EQ(ids(select(devices, {}, {}).ranked), (Ids{"b", "c", "a", "f"}));
  EXPECT_EQ(ids(select(devices, {}, {.sort = SortBy::price}).ranked), (Ids{"a", "f", "b"}));
  EXPECT_EQ(ids(select(devices, {}, {.sort = SortBy::rate_per_dollar}).ranked), (Ids{"a", "b", "f"}));
  EXPECT_EQ(ids(select(devices, {}, {.sort = SortBy::rate_per_watt}).ranked), (Ids{"c", "a", "f", "b"}));
  EXPECT_EQ(ids(select(devices, {}, {.sort = SortBy::memory}).ranked), (Ids{"f", "b", "c", "a"}));
  EXPECT_EQ(ids(select(devices, {}, {.vendor = "NVIDIA"}).ranked), (Ids{"b", "c", "a"}));
  EXPECT_EQ(ids(select(devices, {}, {.kind = "soc"}).ranked), Ids{"f"});
  EXPECT_EQ(ids(select(devices, {}, {.announced = true}).ranked).front(), "e");
}

TEST(Select, SaysWhyOthersAreLeftOut) {
  const auto devices = market();
  const Selection s = select(devices, {}, {.min_memory_gb = 40, .max_price = 20000, .sort = SortBy::price});
  EXPECT_EQ(ids(s.ranked), (Ids{"f", "b"}));
  EXPECT_CONTAINS(why(s, "a"), "24 GB of memory, 40 asked for");
  EXPECT_CONTAINS(why(s, "c"), "its price is not known");
  EXPECT_CONTAINS(why(s, "d"), "emulated: d has no bf16 arithmetic");
  EXPECT_CONTAINS(why(s, "e"), "announced");
  EXPECT_CONTAINS(why(select(devices, {}, {.max_price = 5000}), "b"), "10000 USD (list price");
}

TEST(Select, HourlyPriceIsTheLowestInDollars) {
  Value list;
  list.kind = Value::Kind::list;
  auto price = [&](double usd, const std::string& currency, const std::string& per) {
    Value entry;
    entry.kind = Value::Kind::object;
    auto text = [](const std::string& x) {
      Value value;
      value.kind = Value::Kind::text;
      value.text = x;
      return value;
    };
    Value number;
    number.number = usd;
    entry.keys = {"provider", "price", "currency", "per", "kind", "date"};
    entry.items = {text("cloud"), number, text(currency), text(per), text("on_demand"), text("2026-01")};
    list.items.push_back(entry);
  };
  price(2.5, "USD", "hour");
  price(2.0, "USD", "device-hour");
  price(1.0, "EUR", "hour");
  price(0.5, "USD", "month");
  const DeviceFacts device = gpu("a", 1, 1, 0, 1).put("economics.prices", list);
  EXPECT_EQ(price_of(device, PriceKind::hour)->usd, 2.0);
  EXPECT_EQ(price_of(device, PriceKind::hour)->basis, "cloud, on_demand, 2026-01");
  EXPECT_EQ(price_of(device, PriceKind::device), std::nullopt);
  EXPECT_EQ(price_of(gpu("a", 1, 1, 7, 1), PriceKind::device)->usd, 7);
}

TEST(Select, RefusesWhatCannotBeAsked) {
  const auto devices = market();
  EXPECT_CONTAINS(error_of([&] { select(devices, {}, {.min_memory_gb = -1}); }), "-1");
  EXPECT_CONTAINS(error_of([&] { select(devices, {}, {.max_price = NAN}); }), "nan");
  EXPECT_CONTAINS(error_of([&] { select(devices, {}, {.vendor = "nvida"}); }), "apple, nvidia");
  EXPECT_CONTAINS(error_of([] { parse_sort("cost"); }), "rate-per-dollar");
  EXPECT_EQ(parse_sort("rate-per-watt"), SortBy::rate_per_watt);
}

}  // namespace
}  // namespace hpqf::device
