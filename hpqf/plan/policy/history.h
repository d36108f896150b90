// history.jsonl: every decision that changed a plan, with all that it was made from; and its replay.
//   first line  {"schema":"hpqf.history","version":1,"plan":{...},"model":"Net","layers":[{"name","kind"},...],
//                "policies":[{"name","options"},...]}      again at a resume, with the plan restored
//   then        {"step","epoch","policy","inputs":{"state","loss","health","sensitivity"},
//                "changes":[{"layer","role","from","to","cause","numbers","reason"},...]}
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/policy/policy.h"

namespace hpqf::plan {

// One line each, without '\n'.
HPQF_API std::string history_start(const PrecisionPlan& plan, const ModelFacts& model,
                                   const std::vector<PolicyPtr>& policies);
HPQF_API std::string history_line(const Decided& decided, const PolicyInput& input);

struct HistoryEntry {
  int64_t line = 0;  // in the file, from 1
  Decided decided;
  std::string verdict;  // "" : decided again, and the same; else what a replay found, or why it could not
  bool recomputed = false, wrong = false;
};
struct Replay {
  std::vector<HistoryEntry> entries;
  int64_t recomputed = 0;    // decided again from the log alone
  int64_t only_applied = 0;  // of a user's policy: the changes fit the plan, more cannot be said
  int64_t wrong = 0;
  PrecisionPlan plan;  // at the end
};

// Decides every line again from the log alone: the policy by its options, on the plan that the lines before left, with
// the logged state and observations. A line is wrong when the changes or the epoch differ, or the changes do not fit
// the plan. Error for a damaged file, naming the line; a last line without its end (a run killed while writing) is left
// out.
HPQF_API Replay replay(std::string_view history, std::string_view where = "history");

// A line for each change, for people.
HPQF_API std::string explain(const Replay& replay);

}  // namespace hpqf::plan
