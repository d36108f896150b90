// CSV as RFC 4180 has it: CRLF, quotes doubled, one header line.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/observe/export/metrics_sink.h"
#include "hpqf/observe/export/output_file.h"

namespace hpqf::observe {

HPQF_API std::string csv_field(std::string_view text);

// A line per step and one per evaluation. Columns: step, time, those of names.h, cause. A value that is not there is
// empty; others are written so that they read back to the last bit, non-finite ones as nan, inf and -inf. A resumed run
// goes on in its file, without the steps it takes again.
class HPQF_API CsvSink : public MetricsSink {
 public:
  CsvSink(std::string path, bool live);  // Error when the folder cannot be made
  void start(const RunInfo& run) override;
  void step(const StepRecord& step) override;
  void evaluation(const EvaluationRecord& evaluation) override;
  void finish(const RunEnd& end) override;
  std::string where() const override { return path_; }

 private:
  std::string path_;
  bool live_;
  RunInfo run_;
  std::optional<OutputFile> file_;
};

}  // namespace hpqf::observe
