// The report of a run: one HTML page that needs nothing else.
#pragma once
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/observe/run/run_record.h"

namespace hpqf::observe {

// Styles, drawings and the script are in the page; it loads nothing, reads on a phone, prints, and without scripts only
// lacks what pops up. Size: about 0.2 MB plus 1 KB per layer and 60 KB per curve, whatever the number of steps. The
// same records give the same bytes. `other` (may be null) is drawn beside `run`.
HPQF_API std::string html_report(const RunRecord& run, const RunRecord* other = nullptr);

}  // namespace hpqf::observe
