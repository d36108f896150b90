// Calibrations as JSON, and the file that keeps them.
#include <fmt/format.h>

#include "hpqf/device/machine/calibration.h"
#include "hpqf/device/machine/json_fields.h"

namespace hpqf::device::machine {
namespace {

constexpr int kVersion = 1;
constexpr int64_t kDay = 24 * 3600;

Json measured_json(const Measured& m) { return {{"median", m.median}, {"q1", m.q1}, {"q3", m.q3}, {"runs", m.runs}}; }

Measured read_measured(const Json& json) {
  return {json.at("median").get<double>(), json.at("q1").get<double>(), json.at("q3").get<double>(),
          json.at("runs").get<int>()};
}

Json figures_json(const Calibration& c) {
  Json json{{"products", Json::array()}, {"layers", Json::array()}, {"bandwidths", Json::array()}};
  for (const ProductFigure& p : c.products)
    json["products"].push_back({{"format", p.format},
                                {"shape", p.shape},
                                {"implementation", p.implementation},
                                {"gflops", measured_json(p.gflops)},
                                {"ratio", measured_json(p.ratio)},
                                {"left_out", p.left_out}});
  for (const LayerFigure& l : c.layers)
    json["layers"].push_back({{"format", l.format},
                              {"shape", l.shape},
                              {"seconds", l.seconds},
                              {"ratio", l.ratio},
                              {"left_out", l.left_out}});
  for (const BandwidthFigure& b : c.bandwidths)
    json["bandwidths"].push_back({{"what", b.what}, {"counted", b.counted}, {"gigabytes", measured_json(b.gigabytes)}});
  return json;
}

Json identity_json(const CalibrationIdentity& i) {
  return {{"cpu", i.cpu},         {"isa", i.isa},   {"torch", i.torch},
          {"threads", i.threads}, {"cpus", i.cpus}, {"quota", i.quota}};
}

CalibrationIdentity read_identity(const Json& json) {
  return {json.at("cpu").get<std::string>(), json.at("isa").get<std::string>(), json.at("torch").get<std::string>(),
          json.at("threads").get<int>(),     json.at("cpus").get<int>(),        json.at("quota").get<double>()};
}

Json calibration_json(const Calibration& c) {
  Json json{{"identity", identity_json(c.identity)},
            {"unix_seconds", c.unix_seconds},
            {"took_seconds", c.took_seconds},
            {"quick", c.quick}};
  json.update(figures_json(c));
  json["noise"] = {{"spread", c.noise.spread},
                   {"stolen", c.noise.stolen},
                   {"throttled", c.noise.throttled},
                   {"others", c.noise.others},
                   {"reasons", c.noise.reasons}};
  json["left_out"] = c.left_out;
  return json;
}

Calibration read_calibration(const Json& json) {
  Calibration c;
  c.identity = read_identity(json.at("identity"));
  c.unix_seconds = json.at("unix_seconds").get<int64_t>();
  c.took_seconds = json.at("took_seconds").get<double>();
  c.quick = json.at("quick").get<bool>();
  auto text = [](const Json& j, const char* key) { return j.at(key).get<std::string>(); };
  for (const Json& p : json.at("products"))
    c.products.push_back({text(p, "format"), text(p, "shape"), text(p, "implementation"), read_measured(p.at("gflops")),
                          read_measured(p.at("ratio")), text(p, "left_out")});
  for (const Json& l : json.at("layers"))
    c.layers.push_back({text(l, "format"), text(l, "shape"), l.at("seconds").get<double>(), l.at("ratio").get<double>(),
                        text(l, "left_out")});
  for (const Json& b : json.at("bandwidths"))
    c.bandwidths.push_back({text(b, "what"), text(b, "counted"), read_measured(b.at("gigabytes"))});
  const Json& n = json.at("noise");
  c.noise = {n.at("spread").get<double>(), n.at("stolen").get<double>(), n.at("throttled").get<double>(),
             n.at("others").get<double>(), n.at("reasons").get<std::vector<std::string>>()};
  c.left_out = json.at("left_out").get<std::vector<std::string>>();
  return c;
}

// All of the file. Throws for what is damaged or of another version.
std::vector<Calibration> read_all(std::string_view text) {
  const Json json = Json::parse(text);
  if (json.at("schema") != "hpqf.calibration" || json.at("version") != kVersion)
    throw std::invalid_argument("of another version");
  std::vector<Calibration> all;
  for (const Json& one : json.at("calibrations")) all.push_back(read_calibration(one));
  return all;
}

}  // namespace

std::string to_json(const Calibration& calibration) {
  return calibration_json(calibration).dump(1, ' ', false, Json::error_handler_t::replace);
}

CalibrationLookup find_calibration(std::string_view text, const CalibrationIdentity& identity, bool quick,
                                   int64_t now) {
  if (text.empty()) return {{}, "no calibration yet"};
  std::vector<Calibration> all;
  try {
    all = read_all(text);
  } catch (const std::exception& e) {
    return {{}, fmt::format("the kept calibration is damaged ({})", e.what())};
  }
  std::string why = "no calibration yet";
  for (Calibration& c : all) {
    if (const std::string other = identity.difference(c.identity); !other.empty()) {
      why = "the kept calibration is for " + other;
      continue;
    }
    if (c.unix_seconds > now + kDay) return {{}, "the kept calibration has a date in the future"};
    if (now - c.unix_seconds > kCalibrationDays * kDay)
      return {{}, fmt::format("the kept calibration is {} days old", (now - c.unix_seconds) / kDay)};
    if (c.quick && !quick) return {{}, "the kept calibration is a quick one"};
    return {std::move(c), ""};
  }
  return {{}, why};
}

std::string add_calibration(std::string_view text, const Calibration& calibration) {
  std::vector<Calibration> all;
  try {
    all = read_all(text);
  } catch (const std::exception&) {  // NOLINT: damaged or none: begun anew
  }
  std::erase_if(all, [&](const Calibration& c) { return c.identity == calibration.identity; });
  all.push_back(calibration);
  Json json{{"schema", "hpqf.calibration"}, {"version", kVersion}, {"calibrations", Json::array()}};
  for (const Calibration& c : all) json["calibrations"].push_back(calibration_json(c));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hpqf::device::machine
