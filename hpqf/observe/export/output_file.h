// A file that only grows, written in whole records.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"

namespace hpqf::observe {

class HPQF_API OutputFile {
 public:
  // Up to `buffer` bytes are held back and written in one write(2); 0: each append is one write, so that a killed run
  // leaves at most one torn record. Error when the file cannot be opened.
  OutputFile(std::string path, bool truncate, size_t buffer);
  ~OutputFile();  // writes what is held back; a failure is lost here, so call flush() first
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void append(std::string_view record);  // Error: disk full, ...
  void flush();                          // to the file system; not fsync: metrics are made again by a resume
  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }  // of the file with what is held back, in bytes

 private:
  std::string path_, held_;
  size_t buffer_;
  int fd_ = -1;
  int64_t size_ = 0;
};

// For a file of lines that a resumed run goes on with: keeps (atomically) the whole lines for which `keep` is true.
// Nothing happens when there is no such file.
HPQF_API void keep_lines(const std::string& path, bool (*keep)(std::string_view line, int64_t last_step),
                         int64_t last_step);

// The folder `path` lies in is created when it is missing. Error when it cannot be.
HPQF_API void create_folder_of(const std::string& path);

}  // namespace hpqf::observe
