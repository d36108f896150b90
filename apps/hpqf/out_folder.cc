#include "apps/hpqf/out_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "hpqf/base/error.h"

namespace hpqf::app {
namespace fs = std::filesystem;

std::string default_out(const std::string& model) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  const std::string base = fmt::format("runs/{}-{:%Y%m%d-%H%M%S}", model, local);
  std::string path = base;
  for (int i = 2; fs::exists(path); ++i) path = fmt::format("{}-{}", base, i);
  return path;
}

OutFolder::OutFolder(std::string path, bool resume) : path_(std::move(path)), resume_(resume) {
  std::error_code ignored;
  const bool exists = fs::exists(path_, ignored);
  if (exists && !fs::is_directory(path_)) {
    throw Error(fmt::format("--out {}", path_), "a folder; this is a file", "choose another folder");
  }
  if (resume && !fs::exists(file("config.json"), ignored)) {
    throw Error(fmt::format("to resume in {}", path_), "a run folder: one with config.json and checkpoints/",
                "check --out, or start a new run without --resume");
  }
  if (!resume && exists && !fs::is_empty(path_)) {
    throw Error(fmt::format("--out {}, which is not empty", path_), "a new or an empty folder",
                "choose another folder, or go on with that run: --resume");
  }
}

OutFolder::~OutFolder() {
  if (!ours_) return;
  std::error_code ignored;  // the error that made us leave matters more
  if (!outermost_.empty()) {
    fs::remove_all(outermost_, ignored);
  } else {
    for (const fs::directory_entry& entry : fs::directory_iterator(path_, ignored)) fs::remove_all(entry, ignored);
  }
}

void OutFolder::create() {
  if (resume_) return;
  for (fs::path p = fs::absolute(path_).lexically_normal(); !p.empty() && !fs::exists(p); p = p.parent_path()) {
    outermost_ = p.string();
  }
  ours_ = true;
  std::error_code failed;
  fs::create_directories(path_, failed);
  if (failed) {
    throw Error(fmt::format("--out {}: {}", path_, failed.message()), "a folder that can be written",
                "choose another folder");
  }
}

}  // namespace hpqf::app
