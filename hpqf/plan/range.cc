#include "hpqf/plan/range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::plan {

int range_exponent(Format format, float amax, int margin) {
  const formats::FormatInfo& info = formats::info(format);
  if (!(amax > 0) || !std::isfinite(amax) || info.exponent_bits >= 8) return 0;
  // ilogb of the quotient is off by one where the mantissas decide; the comparison settles it.
  const double most = std::ldexp(static_cast<double>(info.largest), -margin);
  int e = std::ilogb(most) - std::ilogb(amax) + 1;
  while (std::ldexp(static_cast<double>(amax), e) > most) --e;
  return std::clamp(e, -kMostExponent, kMostExponent);
}

RangeState follow_ranges(RangeState state, const std::vector<RangeObservation>& step, const RangeRules& rules) {
  for (const RangeObservation& seen : step) {
    RangeSiteState& site = state.sites[{seen.layer, seen.role}];
    if (seen.amax > 0 && std::isfinite(seen.amax)) site.window.push_back(seen.amax);
    while (site.window.size() > static_cast<size_t>(rules.window)) site.window.pop_front();
    site.clipped += seen.clipped;
    site.recasts += seen.recasts;
    site.exponent =
        site.window.empty() ? 0 : range_exponent(seen.format, *std::ranges::max_element(site.window), rules.margin);
  }
  return state;
}

void check(const RangeRules& rules) {
  if (rules.window < 1)
    throw Error(fmt::format("range compensation over a window of {} steps", rules.window), "1 or more", "16 is usual");
  if (rules.margin < 0 || rules.margin > 16)
    throw Error(fmt::format("range compensation with a margin of {} binades", rules.margin), "0 to 16", "2 is usual");
}

std::string to_json(const RangeState& state) {
  Json sites = Json::array();
  for (const auto& [key, site] : state.sites) {
    sites.push_back({{"layer", key.first},
                     {"role", name(key.second)},
                     {"window", site.window},
                     {"exponent", site.exponent},
                     {"clipped", site.clipped},
                     {"recasts", site.recasts}});
  }
  return Json{{"sites", std::move(sites)}}.dump();
}

RangeState range_state_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonObject root(json, std::string(where));
  root.allow({"sites"});
  RangeState state;
  for (const Json& entry : root.array("sites")) {
    const JsonObject object(entry, std::string(where));
    object.allow({"layer", "role", "window", "exponent", "clipped", "recasts"});
    const auto role = find_role(object.text("role"));
    if (!role)
      throw Error(fmt::format("{}, key \"role\": \"{}\"", object.place(), object.text("role")),
                  "input, weight, output_grad", "use the original of this file");
    RangeSiteState site;
    for (const Json& amax : object.array("window")) {
      if (!amax.is_number() || !(amax.get<double>() > 0))
        throw Error(fmt::format("{}, key \"window\": {}", object.place(), amax.dump()), "positive numbers",
                    "use the original of this file");
      site.window.push_back(amax.get<float>());
    }
    site.exponent = static_cast<int>(object.integer("exponent", -kMostExponent));
    site.clipped = object.integer("clipped", 0);
    site.recasts = object.integer("recasts", 0);
    state.sites.insert_or_assign({object.text("layer"), *role}, std::move(site));
  }
  return state;
}

}  // namespace hpqf::plan
