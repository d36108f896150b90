#include "hpqf/plan/range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::plan {
namespace {

// Exponents are whole: the quotient in double has neither overflow (largest / smallest subnormal is below 2^278) nor a
// wrong binade where largest / amax is just below a power of two.
int headroom(Format format, float amax) {
  return std::ilogb(static_cast<double>(formats::info(format).largest) / static_cast<double>(amax));
}

}  // namespace

void check(const RangeOptions& options) {
  auto require = [](bool good, const char* name, int value, const char* allowed) {
    if (!good) throw Error(fmt::format("range compensation: {} = {}", name, value), allowed, "use the default");
  };
  constexpr int kLongest = 1024, kMostBinades = 120;
  require(options.window >= 1 && options.window <= kLongest, "window", options.window, "1 to 1024 steps");
  require(options.margin >= 0 && options.margin <= 16, "margin", options.margin, "0 to 16 binades");
  require(options.most >= 1 && options.most <= kMostBinades, "most", options.most, "1 to 120");
}

int range_exponent(Format format, float amax, int margin, const RangeOptions& options) {
  if (formats::info(format).is_integer)
    throw Error(fmt::format("range compensation for {}", formats::name(format)), "floating-point formats",
                "integers have a scale in each block: leave the exponent at 0");
  if (!(amax > 0) || !std::isfinite(amax)) return 0;
  return std::clamp(headroom(format, amax) - margin, -options.most, options.most);
}

bool clips(Format format, float amax, int exponent) {
  return std::isfinite(amax) &&
         std::ldexp(static_cast<double>(amax), exponent) > static_cast<double>(formats::info(format).largest);
}

RangeCast range_cast(const RangeTrack& track, Format format, float amax, const RangeOptions& options) {
  check(options);
  amax = std::abs(amax);
  RangeCast result{track, options.enabled ? track.exponent : 0, false, false, ""};
  RangeTrack& next = result.track;
  next.casts += 1;
  const int own = range_exponent(format, amax, options.margin, options);  // Error for integers
  if (!std::isfinite(amax)) {
    next.nonfinite += 1;
    return result;
  }
  if (track.window.empty() && options.enabled) result.exponent = own;
  if (clips(format, amax, result.exponent)) {
    next.clipped += 1;
    result.clipped = true;
    if (options.enabled && options.recast && !clips(format, amax, own)) {
      next.recasts += 1;
      result.exponent = own;
      result.recast = true;
      result.clipped = false;
    }
  }
  next.window.push_back(amax);
  if (next.window.size() > static_cast<size_t>(options.window))
    next.window.erase(next.window.begin(), next.window.end() - options.window);
  const float largest = *std::max_element(next.window.begin(), next.window.end());
  // A window of zeros says nothing of what comes: the exponent stays.
  if (options.enabled && largest > 0) next.exponent = range_exponent(format, largest, options.margin, options);
  if (next.exponent != track.exponent)
    result.reason = fmt::format("2^{} -> 2^{}: largest of the last {} is {:.6g}", track.exponent, next.exponent,
                                next.window.size(), largest);
  return result;
}

std::string to_json(const RangeState& state) {
  Json tracks = Json::array();
  for (const auto& [key, track] : state.tracks)
    tracks.push_back({{"layer", key.first},
                      {"role", name(key.second)},
                      {"exponent", track.exponent},
                      {"casts", track.casts},
                      {"clipped", track.clipped},
                      {"recasts", track.recasts},
                      {"nonfinite", track.nonfinite},
                      {"window", track.window}});
  return Json{{"tracks", tracks}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

RangeState range_state_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonObject root(json, std::string(where));
  root.allow({"tracks"});
  RangeState state;
  const Json& tracks = root.array("tracks");
  for (size_t i = 0; i < tracks.size(); ++i) {
    const std::string place = fmt::format("{}: track {}", where, i);
    const JsonObject object(tracks[i], place);
    object.allow({"layer", "role", "exponent", "casts", "clipped", "recasts", "nonfinite", "window"});
    RangeTrack track;
    const int64_t exponent = object.integer("exponent", -120);
    if (exponent > 120)
      throw Error(fmt::format("{}, key \"exponent\": {}", place, exponent), "-120 to 120",
                  "take the record of an intact checkpoint");
    track.exponent = static_cast<int>(exponent);
    track.casts = object.integer("casts", 0);
    track.clipped = object.integer("clipped", 0);
    track.recasts = object.integer("recasts", 0);
    track.nonfinite = object.integer("nonfinite", 0);
    for (const Json& amax : object.array("window")) {
      if (!amax.is_number() || !(amax.get<float>() >= 0) || !std::isfinite(amax.get<float>()))
        throw Error(fmt::format("{}, key \"window\": {}", place, amax.dump()), "finite numbers, 0 or more",
                    "take the record of an intact checkpoint");
      track.window.push_back(amax.get<float>());
    }
    const std::pair key{object.text("layer"), parse_operand(object.text("role"), place)};
    if (!state.tracks.emplace(key, std::move(track)).second)
      throw Error(fmt::format("{}: layer \"{}\", {} twice", place, key.first, name(key.second)), "each track once",
                  "take the record of an intact checkpoint");
  }
  return state;
}

}  // namespace hpqf::plan
