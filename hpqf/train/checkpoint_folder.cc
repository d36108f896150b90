#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "hpqf/base/error.h"
#include "hpqf/train/checkpoint.h"

namespace hpqf::train {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = "step-", kSuffix = ".safetensors";

// -1 for any other file, e.g. what a killed write left behind.
int64_t step_of(std::string_view file) {
  if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix) || file.size() <= kPrefix.size() + kSuffix.size())
    return -1;
  file.remove_prefix(kPrefix.size());
  file.remove_suffix(kSuffix.size());
  int64_t step = -1;
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), step);
  return error == std::errc() && end == file.data() + file.size() ? step : -1;
}

bool verifies(const std::string& path) {
  try {
    read_snapshot(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::string dir, int keep) : dir_(std::move(dir)), keep_(keep) {
  if (keep < 1) throw Error(fmt::format("to keep {} checkpoints", keep), "1 or more", "set keep_checkpoints");
}

std::string CheckpointFolder::path(int64_t step) const {
  return fmt::format("{}/{}{:08}{}", dir_, kPrefix, step, kSuffix);
}

std::vector<int64_t> CheckpointFolder::steps() const {
  std::vector<int64_t> all;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(dir_, missing)) {
    if (const int64_t step = step_of(entry.path().filename().string()); step >= 0) all.push_back(step);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string CheckpointFolder::save(const Snapshot& snapshot, const torch::nn::Module& model,
                                   const torch::optim::Optimizer& optimizer) const {
  std::error_code failed;
  fs::create_directories(dir_, failed);
  if (failed)
    throw Error(fmt::format("to create the folder {}", dir_), failed.message(), "choose a folder that can be written");
  std::string written = path(snapshot.counters.step);
  save_checkpoint(written, snapshot, model, optimizer);
  std::vector<int64_t> all = steps();
  for (size_t i = 0; i + static_cast<size_t>(keep_) < all.size(); ++i) {
    if (all[i] != snapshot.counters.step) fs::remove(path(all[i]), failed);  // a file more does no harm
  }
  return written;
}

std::optional<std::string> CheckpointFolder::newest() const {
  const std::vector<int64_t> all = steps();
  if (all.empty()) return std::nullopt;
  const std::string newest = path(all.back());
  try {
    read_snapshot(newest);
  } catch (const Error& e) {
    std::vector<std::string> intact;
    for (size_t i = all.size() - 1; i-- > 0;) {
      if (verifies(path(all[i]))) intact.push_back(path(all[i]));
    }
    throw Error(e.asked(), e.allowed(),
                intact.empty()
                    ? "no older checkpoint is intact: start again in another folder"
                    : fmt::format("remove it to resume from an older one that is intact: {}", fmt::join(intact, ", ")));
  }
  return newest;
}

}  // namespace hpqf::train
