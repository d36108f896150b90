// Files of a run folder that only some runs have.
#pragma once
#include <string>

#include "hpqf/observe/run/run_record.h"

namespace hpqf::observe {

// history.jsonl, alerts.jsonl, monitor.jsonl, gradients.jsonl, memory.json and cost.json into `run`; what cannot be
// understood becomes a note.
void read_optional_files(const std::string& folder, RunRecord& run);

}  // namespace hpqf::observe
