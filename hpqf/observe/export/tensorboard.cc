#include "hpqf/observe/export/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "hpqf/observe/export/crc32c.h"
#include "hpqf/observe/export/names.h"
#include "hpqf/observe/human.h"

namespace hpqf::observe {
namespace {

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto, tensor.proto, tensor_shape.proto.
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr uint32_t kSummaryValue = 1, kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
constexpr uint32_t kPluginData = 1, kPluginName = 1;
constexpr uint32_t kDtype = 1, kShape = 2, kDim = 2, kDimSize = 1, kStringValue = 8;
constexpr uint64_t kDtString = 7, kSessionStart = 1;

std::string little_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

void add_scalar(ProtobufMessage& summary, std::string_view tag, double value) {
  ProtobufMessage entry;
  entry.bytes(kTag, tag);
  entry.fixed32(kSimpleValue, static_cast<float>(value));
  summary.message(kSummaryValue, entry);
}

void add_text(ProtobufMessage& summary, std::string_view tag, std::string_view markdown) {
  ProtobufMessage plugin, metadata, dim, shape, tensor, entry;
  plugin.bytes(kPluginName, "text");
  metadata.message(kPluginData, plugin);
  dim.varint(kDimSize, 1);
  shape.message(kDim, dim);
  tensor.varint(kDtype, kDtString);
  tensor.message(kShape, shape);
  tensor.bytes(kStringValue, markdown);
  entry.bytes(kTag, tag);
  entry.message(kTensor, tensor);
  entry.message(kMetadata, metadata);
  summary.message(kSummaryValue, entry);
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string tfrecord(std::string_view bytes) {
  const std::string length = little_endian(bytes.size(), 8);
  return length + little_endian(masked_crc32c(length), 4) + std::string(bytes) + little_endian(masked_crc32c(bytes), 4);
}

TensorBoardSink::TensorBoardSink(std::string folder, bool live) : folder_(std::move(folder)), live_(live) {
  create_folder_of((std::filesystem::path(folder_) / "x").string());
}

void TensorBoardSink::event(double unix_seconds, int64_t step, uint32_t field, std::string_view value) {
  ProtobufMessage event;
  event.fixed64(kWallTime, unix_seconds);
  event.varint(kStep, static_cast<uint64_t>(step));
  event.bytes(field, value);
  file_->append(tfrecord(event.text()));
}

void TensorBoardSink::start(const RunInfo& run) {
  static std::atomic<int> serial{0};
  run_ = run;
  const std::string name = fmt::format("events.out.tfevents.{:010d}.hpqf.{}.{}", static_cast<int64_t>(run.unix_seconds),
                                       ::getpid(), serial++);
  file_.emplace((std::filesystem::path(folder_) / name).string(), /*truncate=*/true, live_ ? 0 : size_t{1} << 16);
  event(run.unix_seconds, 0, kFileVersion, "brain.Event:2");
  if (run.resumed_from > 0) {
    ProtobufMessage session;
    session.varint(1, kSessionStart);
    event(run.unix_seconds, run.resumed_from + 1, kSessionLog, session.text());
  }
  if (run.settings.empty()) return;
  std::string table = "| setting | value |\n|---|---|\n";
  for (const auto& [key, value] : run.settings) table += fmt::format("| {} | {} |\n", cell(key), cell(value));
  ProtobufMessage summary;
  add_text(summary, "settings", table);
  event(run.unix_seconds, run.resumed_from, kSummary, summary.text());
}

void TensorBoardSink::step(const StepRecord& step) {
  ProtobufMessage summary;
  for (const MetricName& name : metric_names())
    if (const auto value = value_of(name.metric, step, run_)) add_scalar(summary, name.tag, *value);
  event(step.unix_seconds.value_or(run_.unix_seconds), step.step, kSummary, summary.text());
  if (step.changes.empty()) return;
  std::string list;
  for (const std::string& change : step.changes) list += "* " + cell(change) + "\n";
  ProtobufMessage changes;
  add_text(changes, "precision/changes", list);
  event(step.unix_seconds.value_or(run_.unix_seconds), step.step, kSummary, changes.text());
}

void TensorBoardSink::evaluation(const EvaluationRecord& evaluation) {
  ProtobufMessage summary;
  add_scalar(summary, name_of(Metric::validation_loss).tag, evaluation.loss);
  if (evaluation.accuracy) add_scalar(summary, name_of(Metric::validation_accuracy).tag, *evaluation.accuracy);
  event(evaluation.unix_seconds.value_or(run_.unix_seconds), evaluation.step, kSummary, summary.text());
}

void TensorBoardSink::audit(const AuditReport& audit, int64_t step, double unix_seconds) {
  ProtobufMessage summary;
  std::string table = "| format | arithmetic | FLOPs % | time % |\n|---|---|---|---|\n";
  for (const AuditReport::Share& share : audit.shares()) {
    const std::string format = share.format + (share.emulated ? "_emulated" : "");
    add_scalar(summary, fmt::format("{}_{}", name_of(Metric::share_flops).tag, format), share.flops);
    add_scalar(summary, fmt::format("{}_{}", name_of(Metric::share_time).tag, format), share.seconds);
    table += fmt::format("| {} | {} | {} | {} |\n", share.format, share.emulated ? "emulated" : "native",
                         percent(share.flops), percent(share.seconds));
  }
  add_scalar(summary, name_of(Metric::native_flops).tag, native_flops_share(audit));
  add_scalar(summary, name_of(Metric::as_requested_flops).tag, as_requested_flops_share(audit));
  add_text(summary, "precision/shares", table);
  event(unix_seconds, step, kSummary, summary.text());
}

void TensorBoardSink::finish(const RunEnd&) { file_->flush(); }

}  // namespace hpqf::observe
