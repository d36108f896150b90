// Files that are either whole or not there.
#pragma once
#include <string>
#include <string_view>

#include "hpqf/base/export.h"

namespace hpqf::base {

// The bytes of a file. Error when it cannot be opened or read.
HPQF_API std::string read_file(const std::string& path);

// Writes a temporary file beside `path`, fsyncs it, renames it over `path` and fsyncs the folder: a reader, or a
// machine that loses power, sees the old content or the new one. Error (disk full, no permission, no such folder):
// `path` is untouched and the temporary file is gone. Keeps the permissions of a file it replaces.
// A device or a pipe is never replaced: the bytes are written to it.
HPQF_API void atomic_write(const std::string& path, std::string_view content);

// Appends lines to a file, one write(2) each, so that a line is whole even if the process dies right after.
class HPQF_API LineAppender {
 public:
  explicit LineAppender(const std::string& path, bool truncate = false);  // Error when it cannot be opened
  ~LineAppender();
  LineAppender(LineAppender&& other) noexcept;
  LineAppender& operator=(LineAppender&&) = delete;
  LineAppender(const LineAppender&) = delete;

  void append(std::string_view line);  // without '\n', which is added; Error when the write fails
  void flush();                        // fsync: the lines survive a power cut
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

// Where a figure measured on this machine is kept: `name` in $XDG_CACHE_HOME/hpqf or ~/.cache/hpqf. "" without a home:
// nothing can be kept.
HPQF_API std::string cache_file(const std::string& name);

}  // namespace hpqf::base
