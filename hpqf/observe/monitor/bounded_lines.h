// A JSONL file that cannot grow without end and whose failures never reach the training.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/base/file.h"

namespace hpqf::observe {

// Appends lines. When the file passes `max_bytes` it is thinned: every second step goes, except in the newest quarter
// and lines that contain `keep`; so old times become coarser and recent ones stay whole. What cannot be written (disk
// full, folder gone) is said once; appending is tried again after `kRetry` lines, as a full disk may be emptied.
class HPQF_API BoundedLines {
 public:
  static constexpr int64_t kRetry = 100;

  // Nothing is opened before the first line. `keep`: e.g. "\"alerts\"". Error for less than 4096 bytes.
  BoundedLines(std::string path, int64_t max_bytes, std::string keep = "");

  // Drops lines of steps after `last_step` and a torn last one, as a resumed run takes those steps again; 0: starts the
  // file anew. Failure is kept like that of an append.
  void resume_after(int64_t last_step);
  // What went wrong, the first time and when the cause changes; "" otherwise.
  std::string append(std::string_view line) noexcept;
  const std::string& path() const { return path_; }
  int64_t dropped() const { return dropped_; }  // lines that could not be written

 private:
  void thin();
  std::string guarded(const std::function<void()>& work) noexcept;

  std::string path_, keep_;
  int64_t max_bytes_, bytes_ = 0, dropped_ = 0, wait_ = 0;
  std::optional<base::LineAppender> file_;
  std::string said_;
};

}  // namespace hpqf::observe
