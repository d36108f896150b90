#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/run/lines.h"
#include "hpqf/observe/run/optional_files.h"
#include "hpqf/observe/run/run_record.h"

namespace hpqf::observe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string file(const std::string& folder, const char* name) { return (fs::path(folder) / name).string(); }

void require_run(const std::string& folder) {
  const char* allowed = "a run folder: one with metrics.jsonl, plan.json or audit.json";
  const char* todo = "name the folder that hpqf train --out wrote";
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) throw Error(fmt::format("run folder '{}'", folder), allowed, todo);
  for (const char* name : {"metrics.jsonl", "plan.json", "audit.json"})
    if (fs::exists(file(folder, name), ignored)) return;
  throw Error(fmt::format("run folder '{}', which holds no run", folder), allowed, todo);
}

// A file that may be missing; one that cannot be understood becomes a note.
void optional_file(const std::string& folder, const char* name, const char* when_missing,
                   std::vector<std::string>& notes, const std::function<void(const std::string& text)>& use) {
  const std::string path = file(folder, name);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    if (*when_missing) notes.push_back(fmt::format("{} is missing: {}", name, when_missing));
    return;
  }
  const std::string text = base::read_file(path);
  try {
    use(text);
  } catch (const Error& e) {
    notes.push_back(fmt::format("{} was left out: {} (allowed: {})", name, e.asked(), e.allowed()));
  } catch (const nlohmann::json::exception& e) {
    notes.push_back(fmt::format("{} was left out: {}", name, e.what()));
  }
}

void note_lines(const char* name, const LinesRead& read, int64_t foreign, std::vector<std::string>& notes) {
  if (read.torn) notes.push_back(fmt::format("{}: the last line is torn and was left out: the run was killed", name));
  if (read.too_long > 0) notes.push_back(fmt::format("{}: {} lines longer than 1 MiB left out", name, read.too_long));
  if (foreign > 0) notes.push_back(fmt::format("{}: {} lines that are no record of a step left out", name, foreign));
}

void add_step(RunRecord& run, StepRecord step) {
  if (run.steps > 0 && step.step <= run.last_step) {
    run.notes.push_back(
        fmt::format("metrics.jsonl goes back from step {} to {}: the later lines hold", run.last_step, step.step));
    run.skipped -= static_cast<int64_t>(
        std::erase_if(run.skipped_steps, [&](const SkippedStep& s) { return s.step >= step.step; }));
    run.changes -=
        static_cast<int64_t>(std::erase_if(run.change_texts, [&](const auto& c) { return c.first >= step.step; }));
  }
  if (run.steps == 0) run.first_step = step.step;
  run.last_step = step.step;
  run.epochs = step.epoch + 1;
  run.loss.add(step.step, step.loss);
  run.steps = run.loss.points();
  run.loss_scale.add(step.step, step.loss_scale);
  if (step.grad_norm) run.grad_norm.add(step.step, *step.grad_norm);
  if (step.lr) run.lr.add(step.step, *step.lr);
  if (step.samples_per_second) run.samples_per_second.add(step.step, *step.samples_per_second);
  if (step.seconds) {
    run.step_seconds += *step.seconds;
    ++run.timed_steps;
  }
  if (step.skipped) {
    ++run.skipped;
    if (run.skipped_steps.size() < RunRecord::kLongestList) run.skipped_steps.push_back({step.step, step.cause});
  }
  for (std::string& text : step.changes) {
    ++run.changes;
    if (run.change_texts.size() < RunRecord::kLongestList) run.change_texts.emplace_back(step.step, std::move(text));
  }
}

void read_steps(const std::string& folder, RunRecord& run) {
  std::error_code ignored;
  const std::string path = file(folder, "metrics.jsonl");
  if (!fs::exists(path, ignored)) {
    run.notes.push_back("metrics.jsonl is missing: there are no curves");
    return;
  }
  int64_t foreign = 0;
  const LinesRead read = for_each_line(path, [&](std::string_view line) {
    if (auto step = parse_step(line))
      add_step(run, std::move(*step));
    else
      ++foreign;
  });
  note_lines("metrics.jsonl", read, foreign, run.notes);
  if (run.steps == 0) run.notes.push_back("metrics.jsonl holds no step: the run ended before its first one did");
}

void read_evaluations(const std::string& folder, RunRecord& run) {
  std::error_code ignored;
  const std::string path = file(folder, "evaluations.jsonl");
  if (!fs::exists(path, ignored)) return;
  int64_t foreign = 0;
  const LinesRead read = for_each_line(path, [&](std::string_view line) {
    auto evaluation = parse_evaluation(line);
    if (!evaluation || run.evaluations.size() >= 10 * RunRecord::kLongestList) {
      ++foreign;
      return;
    }
    std::erase_if(run.evaluations, [&](const EvaluationRecord& e) { return e.step >= evaluation->step; });
    run.evaluations.push_back(std::move(*evaluation));
  });
  note_lines("evaluations.jsonl", read, foreign, run.notes);
}

std::string shown(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

RunResult result_of(const std::string& text) {
  const Json root = Json::parse(text);
  RunResult result;
  result.task = root.value("task", "");
  const auto number = [&](const char* key) -> std::optional<double> {
    const auto it = root.find(key);
    return it != root.end() && it->is_number() ? std::optional(it->get<double>()) : std::nullopt;
  };
  result.loss = number("loss").value_or(std::nan(""));
  result.accuracy = number("accuracy");
  result.perplexity = number("perplexity");
  result.samples = root.value("samples", int64_t{0});
  result.steps = root.value("steps", int64_t{0});
  result.skipped = root.value("skipped", int64_t{0});
  result.seconds = root.value("seconds", 0.0);
  return result;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> settings_of(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> settings;
  const Json root = Json::parse(text);
  if (!root.is_object())
    throw Error("settings that are no JSON object", "an object of option names", "correct config.json");
  for (const auto& [key, value] : root.items()) {
    if (key == "schema" || key == "version") continue;
    std::string list;
    if (value.is_array()) {
      for (const Json& element : value) list += (list.empty() ? "" : ", ") + shown(element);
    } else {
      list = shown(value);
    }
    settings.emplace_back(key, std::move(list));
  }
  return settings;
}

std::string RunRecord::setting(const std::string& key) const {
  for (const auto& [name, value] : settings)
    if (name == key) return value;
  return "";
}

RunRecord read_run(const std::string& folder) {
  require_run(folder);
  RunRecord run;
  run.folder = folder;
  read_steps(folder, run);
  read_evaluations(folder, run);
  optional_file(folder, "config.json", "", run.notes,
                [&](const std::string& text) { run.settings = settings_of(text); });
  optional_file(folder, "plan.json", "it is not known what was requested", run.notes, [&](const std::string& text) {
    run.plan = plan::PrecisionPlan::from_json(text, "plan.json");
    run.facts = plan::model_facts_from_json(text, "plan.json");
  });
  optional_file(folder, "audit.json", "the run has not ended, or was killed; a run writes it at its end", run.notes,
                [&](const std::string& text) { run.audit = AuditReport::from_json(text, "audit.json"); });
  optional_file(folder, "result.json", "", run.notes, [&](const std::string& text) { run.result = result_of(text); });
  read_optional_files(folder, run);
  return run;
}

RunInfo read_run_info(const std::string& folder) {
  require_run(folder);
  RunInfo info;
  std::vector<std::string> notes;
  optional_file(folder, "config.json", "", notes, [&](const std::string& text) { info.settings = settings_of(text); });
  info.name = fs::path(folder).lexically_normal().filename().string();
  if (info.name.empty()) info.name = fs::path(folder).lexically_normal().parent_path().filename().string();
  for (const auto& [key, value] : info.settings) {
    if (key == "model") info.model = value;
    if (key == "data") info.data = value;
    if (key == "precision" || key == "plan") info.precision = value;
    if (key == "batch-size") info.batch_size = std::atoll(value.c_str());
  }
  // The run began when its settings were written.
  for (const char* name : {"config.json", "plan.json", "metrics.jsonl", "audit.json"}) {
    std::error_code missing;
    const auto when = fs::last_write_time(file(folder, name), missing);
    if (missing) continue;
    const auto system = std::chrono::file_clock::to_sys(when);
    info.unix_seconds = std::chrono::duration<double>(system.time_since_epoch()).count();
    break;
  }
  return info;
}

}  // namespace hpqf::observe
