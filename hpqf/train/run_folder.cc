#include "hpqf/train/run_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"

namespace hpqf::train {
namespace fs = std::filesystem;

RunFolder::RunFolder(std::string dir, int keep_checkpoints, bool resume)
    : dir_(std::move(dir)), checkpoints_(dir_ + "/checkpoints", keep_checkpoints) {
  if (resume) {
    resume_from_ = checkpoints_.newest();
    if (!resume_from_) {
      throw Error(fmt::format("to resume from {}", dir_), "a folder with checkpoints/step-*.safetensors",
                  "check the path, or start a new run without resume");
    }
  } else if (fs::exists(file("metrics.jsonl")) || !checkpoints_.steps().empty()) {
    throw Error(fmt::format("to start a run in {}, which holds one", dir_), "a new or an empty folder",
                "choose another folder, or resume");
  }
  std::error_code failed;
  fs::create_directories(file("checkpoints"), failed);
  if (failed) {
    throw Error(fmt::format("to create the run folder {}: {}", dir_, failed.message()), "a folder that can be written",
                "choose another folder");
  }
  // Permissions can lie (root, read-only mounts, quotas): only a write tells.
  const std::string probe = file(".writable");
  base::atomic_write(probe, "");
  fs::remove(probe, failed);
}

void RunFolder::start_metrics(int64_t after_step) { metrics_.emplace(file("metrics.jsonl"), after_step); }

void RunFolder::write_plan(const PrecisionPlan& plan, const plan::ModelFacts& facts) const {
  base::atomic_write(file("plan.json"), plan.to_json(&facts));
}

void RunFolder::write_audit(const observe::AuditReport& report) const {
  base::atomic_write(file("audit.json"), report.to_json());
}

}  // namespace hpqf::train
