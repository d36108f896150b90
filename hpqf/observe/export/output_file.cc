#include "hpqf/observe/export/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"

namespace hpqf::observe {
namespace {

[[noreturn]] void fail(const char* what, const std::string& path) {
  throw Error(fmt::format("{} {}", what, path),
              fmt::format("an operation the file system grants; it said: {}", std::strerror(errno)),
              "free disk space, or choose a folder that can be written");
}

}  // namespace

OutputFile::OutputFile(std::string path, bool truncate, size_t buffer) : path_(std::move(path)), buffer_(buffer) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (truncate ? O_TRUNC : 0), 0666);
  if (fd_ < 0) fail("write", path_);
  const off_t end = ::lseek(fd_, 0, SEEK_END);
  size_ = end > 0 ? end : 0;
}

OutputFile::~OutputFile() {
  try {
    flush();
  } catch (const Error&) {
    held_.clear();
  }
  ::close(fd_);
}

void OutputFile::append(std::string_view record) {
  held_ += record;
  size_ += static_cast<int64_t>(record.size());
  if (held_.size() > buffer_) flush();
}

void OutputFile::flush() {
  std::string_view left = held_;
  while (!left.empty()) {
    const ssize_t written = ::write(fd_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      held_.clear();  // a second attempt would only tear the file further
      fail("write", path_);
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
  held_.clear();
}

void keep_lines(const std::string& path, bool (*keep)(std::string_view, int64_t), int64_t last_step) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  const std::string content = base::read_file(path);
  std::string kept;
  for (std::string_view left = content; !left.empty();) {
    const size_t end = left.find('\n');
    if (end == std::string_view::npos) break;  // torn
    if (keep(left.substr(0, end), last_step)) kept += left.substr(0, end + 1);
    left.remove_prefix(end + 1);
  }
  if (kept.size() != content.size()) base::atomic_write(path, kept);
}

void create_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw Error(fmt::format("to create the folder {}: {}", folder.string(), failed.message()),
                "a folder that can be written", "choose another folder");
}

}  // namespace hpqf::observe
