// The sections of the report, each a pure function of the record of a run to HTML. Not for users: they see report.h.
#pragma once
#include <string>
#include <vector>

#include "hpqf/observe/report/effective.h"
#include "hpqf/observe/run/run_record.h"

namespace hpqf::observe {

// `other` is the run that is compared with; null: none.
std::string page_title(const RunRecord& run);  // plain text, e.g. "resnet20 on fashion-mnist"
std::string summary_section(const RunRecord& run, const RunRecord* other);
std::string curves_section(const RunRecord& run, const RunRecord* other);
std::string share_section(const RunRecord& run, const RunRecord* other);
std::string matrix_section(const RunRecord& run, const std::vector<LayerFormats>& layers);
std::string difference_section(const RunRecord& run, const std::vector<LayerFormats>& layers);
std::string history_section(const RunRecord& run);
std::string comparison_section(const RunRecord& run, const RunRecord& other);
std::string layer_time_section(const RunRecord& run);
std::string monitor_section(const RunRecord& run);
std::string cost_section(const RunRecord& run);
std::string alert_section(const RunRecord& run);
std::string settings_section(const RunRecord& run);

// CSS class of a block format's element format, "f-int8"; "f-none" when it is unknown.
std::string format_class(const std::string& block_format);

}  // namespace hpqf::observe
