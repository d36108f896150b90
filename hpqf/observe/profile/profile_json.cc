// ProfileReport as JSON, schema "hpqf.profile": for tools; not read back.
#include "hpqf/observe/profile/profile_report.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

using plan::Json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

std::string ProfileReport::to_json(int indent) const {
  Json json{{"schema", "hpqf.profile"}, {"version", 1}};
  json["steps"] = audit.steps;
  json["seconds"] = audit.total_seconds;
  json["counted_seconds"] = audit.counted_seconds();
  json["flops"] = audit.counted_flops();
  json["low_precision"] = {{"flops", low_precision_flops()}, {"time", low_precision_time()}};
  json["computed_in"] = Json::array();
  for (const ArithmeticShare& s : shares())
    json["computed_in"].push_back({{"format", formats::name(s.format)},
                                   {"flops", s.flops},
                                   {"seconds", s.seconds},
                                   {"share_of_flops", s.share_of_flops},
                                   {"share_of_time", s.share_of_time},
                                   {"achieved_over_peak", or_null(s.achieved_over_peak)}});
  const Utilisation use = utilisation();
  json["utilisation"] = {{"u", or_null(use.u)},
                         {"mfu", or_null(use.mfu)},
                         {"mfu_base", formats::name(use.base)},
                         {"flops_per_second", use.flops_per_second}};
  json["utilisation"]["unknown_peaks"] = Json::array();
  for (Format format : use.unknown) json["utilisation"]["unknown_peaks"].push_back(formats::name(format));
  json["rates"] = plan::parse_json(rates.to_json(), "rates");
  json["rows"] = Json::array();
  for (const AuditRow& row : audit.rows)
    json["rows"].push_back({{"layer", row.layer},
                            {"op", row.op},
                            {"pass", name(row.pass)},
                            {"requested", {row.requested_a, row.requested_b}},
                            {"effective", {row.effective_a, row.effective_b}},
                            {"computed_in", formats::name(arithmetic(row))},
                            {"implementation", row.implementation},
                            {"reason", row.reason},
                            {"calls", row.calls},
                            {"flops", row.flops},
                            {"bytes", row.bytes},
                            {"seconds", row.seconds}});
  json["roofline"] = Json::array();
  for (const RooflinePoint& p : roofline())
    json["roofline"].push_back({{"layer", p.layer},
                                {"op", p.op},
                                {"pass", name(p.pass)},
                                {"format", formats::name(p.format)},
                                {"flop_per_byte", p.intensity},
                                {"flop_per_second", p.achieved},
                                {"attainable", or_null(p.attainable)},
                                {"bound", !p.attainable    ? "unknown"
                                          : p.memory_bound ? "memory"
                                                           : "compute"}});
  json["uncounted"] = Json::array();
  for (const UncountedOp& op : audit.uncounted)
    json["uncounted"].push_back({{"op", op.op}, {"share_of_time", op.share_of_time}, {"calls", op.calls}});
  json["casts"] = {{"nonfinite", nonfinite_casts}, {"overflow", overflowing_casts}};
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hpqf::observe
