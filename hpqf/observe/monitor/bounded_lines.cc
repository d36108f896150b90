#include "hpqf/observe/monitor/bounded_lines.h"

#include <filesystem>
#include <vector>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

std::vector<std::string_view> whole_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    lines.push_back(text.substr(0, end + 1));
  return lines;
}

// The text of the number after "step": lines of one step belong together, and thinning line by line would take the same
// kind of row out of each of them.
std::string_view step_of(std::string_view line) {
  constexpr std::string_view kKey = "\"step\":";
  const size_t at = line.find(kKey);
  if (at == std::string_view::npos) return line;
  const size_t begin = at + kKey.size();
  return line.substr(begin, line.find_first_of(",}", begin) - begin);
}

}  // namespace

BoundedLines::BoundedLines(std::string path, int64_t max_bytes, std::string keep)
    : path_(std::move(path)), keep_(std::move(keep)), max_bytes_(max_bytes) {
  if (max_bytes < 4096)
    throw Error("a file of at most " + std::to_string(max_bytes) + " bytes", "4096 bytes or more",
                "give room for some lines");
}

std::string BoundedLines::guarded(const std::function<void()>& work) noexcept {
  std::string what;
  try {
    work();
    said_.clear();
    return "";
  } catch (const Error& e) {
    what = e.asked() + ": " + e.allowed();
  } catch (const std::exception& e) {
    what = e.what();
  }
  ++dropped_;
  wait_ = kRetry;
  file_.reset();
  if (what == said_) return "";
  said_ = what;
  return what;
}

std::string BoundedLines::append(std::string_view line) noexcept {
  if (wait_ > 0) {
    --wait_;
    ++dropped_;
    return "";
  }
  return guarded([&] {
    if (!file_) {
      file_.emplace(path_);
      bytes_ = static_cast<int64_t>(std::filesystem::file_size(path_));
    }
    file_->append(line);
    bytes_ += static_cast<int64_t>(line.size()) + 1;
    if (bytes_ > max_bytes_) thin();
  });
}

void BoundedLines::thin() {
  if (!std::filesystem::is_regular_file(path_)) return;
  file_.reset();
  std::string text = base::read_file(path_);
  // Lines to keep at all costs may alone be more than the file may hold: then they are thinned like the others.
  for (bool spare : {true, false, false, false}) {
    const std::vector<std::string_view> lines = whole_lines(text);
    const size_t recent = lines.size() - lines.size() / 4;
    std::string kept;
    bool odd = true;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i == 0 || step_of(lines[i]) != step_of(lines[i - 1])) odd = !odd;
      const bool marked = spare && !keep_.empty() && lines[i].find(keep_) != std::string_view::npos;
      if (!odd || i >= recent || marked) kept += lines[i];
    }
    text = std::move(kept);
    if (static_cast<int64_t>(text.size()) <= max_bytes_ * 3 / 4) break;
  }
  base::atomic_write(path_, text);
  file_.emplace(path_);
  bytes_ = static_cast<int64_t>(text.size());
}

void BoundedLines::resume_after(int64_t last_step) {
  guarded([&] {
    file_.reset();
    if (!std::filesystem::is_regular_file(path_)) return;  // a rename would replace a device or a pipe
    std::string kept;
    if (last_step > 0) {
      const std::string text = base::read_file(path_);
      for (std::string_view line : whole_lines(text)) {
        const plan::Json json = plan::Json::parse(line, nullptr, false);
        if (json.is_object() && json.contains("step") && json["step"].is_number_integer() &&
            json["step"].get<int64_t>() <= last_step)
          kept += line;
      }
    }
    base::atomic_write(path_, kept);
  });
}

}  // namespace hpqf::observe
