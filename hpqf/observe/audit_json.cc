// AuditReport as JSON, schema "hpqf.audit".
#include <fmt/format.h>

#include "hpqf/base/error.h"
#include "hpqf/observe/audit.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

using plan::Json;
using plan::JsonObject;

constexpr std::string_view kSchema = "hpqf.audit";
constexpr int64_t kVersion = 1;

Json row_json(const AuditRow& row) {
  return {{"layer", row.layer},
          {"op", row.op},
          {"pass", name(row.pass)},
          {"requested_a", row.requested_a},
          {"requested_b", row.requested_b},
          {"effective_a", row.effective_a},
          {"effective_b", row.effective_b},
          {"implementation", row.implementation},
          {"reason", row.reason},
          {"calls", row.calls},
          {"flops", row.flops},
          {"bytes", row.bytes},
          {"seconds", row.seconds}};
}

std::string read_format(const JsonObject& object, const char* key) {
  const std::string text = object.text(key);
  try {
    formats::parse_block_format(text);
  } catch (const Error& e) {
    throw Error(fmt::format("{}, key \"{}\": {}", object.place(), key, e.asked()), e.allowed(), e.todo());
  }
  return text;
}

AuditRow read_row(const Json& json, std::string_view where, size_t index) {
  const JsonObject object(json, fmt::format("{}: row {}", where, index));
  object.allow({"layer", "op", "pass", "requested_a", "requested_b", "effective_a", "effective_b", "implementation",
                "reason", "calls", "flops", "bytes", "seconds"});
  AuditRow row;
  row.layer = object.text("layer");
  row.op = object.text("op");
  const std::string pass = object.text("pass");
  const auto found = find_pass(pass);
  if (!found)
    throw Error(fmt::format("{}, key \"pass\": \"{}\"", object.place(), pass), "forward, dgrad, wgrad, backward",
                "correct the pass");
  row.pass = *found;
  row.requested_a = read_format(object, "requested_a");
  row.requested_b = read_format(object, "requested_b");
  row.effective_a = read_format(object, "effective_a");
  row.effective_b = read_format(object, "effective_b");
  row.implementation = object.text("implementation");
  row.reason = object.text("reason");
  row.calls = object.integer("calls", 0);
  row.flops = object.number("flops", 0);
  row.bytes = object.number("bytes", 0);
  row.seconds = object.number("seconds", 0);
  return row;
}

UncountedOp read_uncounted(const Json& json, std::string_view where, size_t index) {
  const JsonObject object(json, fmt::format("{}: uncounted op {}", where, index));
  object.allow({"op", "share_of_time", "calls"});
  return {object.text("op"), object.number("share_of_time", 0), object.integer("calls", 0)};
}

}  // namespace

std::string AuditReport::to_json(int indent) const {
  Json json;
  json["schema"] = kSchema;
  json["version"] = kVersion;
  json["steps"] = steps;
  json["sampled_steps"] = sampled_steps;
  json["total_seconds"] = total_seconds;
  json["rows"] = Json::array();
  for (const AuditRow& row : rows) json["rows"].push_back(row_json(row));
  json["uncounted"] = Json::array();
  for (const UncountedOp& op : uncounted)
    json["uncounted"].push_back({{"op", op.op}, {"share_of_time", op.share_of_time}, {"calls", op.calls}});
  json["shares"] = Json::array();  // derived, for readers; not read back
  for (const Share& share : shares())
    json["shares"].push_back(
        {{"format", share.format}, {"emulated", share.emulated}, {"flops", share.flops}, {"seconds", share.seconds}});
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

AuditReport AuditReport::from_json(std::string_view text, std::string_view where) {
  const Json json = plan::parse_json(text, where);
  const JsonObject root(json, std::string(where));
  root.check_schema(kSchema, kVersion);
  root.allow({"schema", "version", "steps", "sampled_steps", "total_seconds", "rows", "uncounted", "shares"});
  AuditReport report;
  report.steps = root.integer("steps", 0);
  report.sampled_steps = json.contains("sampled_steps") ? root.integer("sampled_steps", 0) : 0;
  report.total_seconds = root.number("total_seconds", 0);
  const Json& rows = root.array("rows");
  for (size_t i = 0; i < rows.size(); ++i) report.rows.push_back(read_row(rows[i], where, i));
  const Json& uncounted = root.array("uncounted");
  for (size_t i = 0; i < uncounted.size(); ++i) report.uncounted.push_back(read_uncounted(uncounted[i], where, i));
  return report;
}

}  // namespace hpqf::observe
