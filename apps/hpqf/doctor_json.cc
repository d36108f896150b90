#include <nlohmann/json.hpp>

#include "apps/hpqf/doctor_report.h"

namespace hpqf::app {
namespace {

using Json = nlohmann::ordered_json;
using namespace device::machine;

Json torch_json(const TorchFacts& t) {
  return {{"version", t.version}, {"backend", t.backend},
          {"mkl", t.mkl},         {"onednn", t.onednn},
          {"openmp", t.openmp},   {"capability", t.capability},
          {"threads", t.threads}, {"interop_threads", t.interop_threads},
          {"cuda", t.cuda},       {"rocm", t.rocm}};
}

}  // namespace

std::string report_json(const Diagnosis& d) {
  Json json{
      {"schema", "hpqf.doctor"}, {"version", 1}, {"recorded", d.recorded}, {"machine", Json::parse(to_json(d.facts))}};
  if (d.torch) json["torch"] = torch_json(*d.torch);
  json["threads"] = d.threads;
  json["calibration_note"] = d.calibration_note;
  json["calibration"] = d.calibration ? Json::parse(to_json(*d.calibration)) : Json();
  json["what_pays"] = Json::array();
  for (const Verdict& v : d.verdicts)
    json["what_pays"].push_back({{"format", v.format},
                                 {"worth", to_string(v.worth)},
                                 {"best_ratio", v.best_ratio > 0 ? Json(v.best_ratio) : Json()},
                                 {"because", v.text}});
  json["findings"] = Json::array();
  for (const Finding& f : d.findings)
    json["findings"].push_back(
        {{"severity", to_string(f.severity)}, {"id", f.id}, {"what", f.what}, {"why", f.why}, {"do", f.todo}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hpqf::app
