// TensorBoard event files without TensorFlow: scalars under torchtitan's names, and the settings and the plan's shares
// as text.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/observe/export/metrics_sink.h"
#include "hpqf/observe/export/output_file.h"
#include "hpqf/observe/export/protobuf.h"

namespace hpqf::observe {

// One record of a TFRecord file: length (u64), masked CRC-32C of the length, bytes, masked CRC-32C of the bytes; all
// little endian.
HPQF_API std::string tfrecord(std::string_view bytes);

// Writes FOLDER/events.out.tfevents.SECONDS.hpqf.PID.N, a new file each time: a resumed run's file begins with a
// session mark that makes TensorBoard drop the later steps of the earlier file.
class HPQF_API TensorBoardSink : public MetricsSink {
 public:
  TensorBoardSink(std::string folder, bool live);  // Error when the folder cannot be made
  void start(const RunInfo& run) override;
  void step(const StepRecord& step) override;
  void evaluation(const EvaluationRecord& evaluation) override;
  void audit(const AuditReport& audit, int64_t step, double unix_seconds) override;
  void finish(const RunEnd& end) override;
  std::string where() const override { return folder_; }

 private:
  void event(double unix_seconds, int64_t step, uint32_t field, std::string_view value);
  std::string folder_;
  bool live_;
  RunInfo run_;
  std::optional<OutputFile> file_;
};

}  // namespace hpqf::observe
