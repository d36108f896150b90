#include "hpqf/observe/profile/rate_table.h"

#include <fmt/format.h>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

using plan::Json;
using plan::JsonObject;

constexpr std::string_view kSchema = "hpqf.rates";

Json to_object(const PeakRate& rate) {
  return {{"per_second", rate.per_second}, {"basis", rate.basis}, {"source", rate.source}};
}

PeakRate read_rate(const Json& json, const std::string& place) {
  const JsonObject object(json, place);
  object.allow({"per_second", "basis", "source"});
  PeakRate rate{object.number("per_second", 0), object.text("basis"), object.text("source")};
  if (rate.per_second == 0)
    throw Error(place + ": a rate of 0", "rates over 0", "leave out what is unknown: it is shown as unknown");
  if (rate.basis != "measured" && rate.basis != "quoted")
    throw Error(fmt::format("{}: basis \"{}\"", place, rate.basis), "measured, quoted", "say where the figure is from");
  return rate;
}

}  // namespace

const PeakRate* RateTable::find(Format format) const {
  const auto it = peaks.find(format);
  return it == peaks.end() ? nullptr : &it->second;
}

std::string RateTable::to_json(int indent) const {
  Json json{{"schema", kSchema}, {"version", 1}, {"device", device}};
  json["peaks"] = Json::object();
  for (const auto& [format, rate] : peaks) json["peaks"][formats::name(format)] = to_object(rate);
  if (bandwidth) json["bandwidth"] = to_object(*bandwidth);
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

RateTable RateTable::from_json(std::string_view text, std::string_view where) {
  const Json json = plan::parse_json(text, where);
  const JsonObject root(json, std::string(where));
  root.check_schema(kSchema, 1);
  root.allow({"schema", "version", "device", "peaks", "bandwidth"});
  RateTable table;
  table.device = root.text("device");
  for (const auto& [name, rate] : root.object("peaks").items())
    table.peaks[formats::parse_format(name)] = read_rate(rate, fmt::format("{}: peak of {}", where, name));
  if (root.has("bandwidth")) table.bandwidth = read_rate(root.object("bandwidth"), fmt::format("{}: bandwidth", where));
  return table;
}

}  // namespace hpqf::observe
