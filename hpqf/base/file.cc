#include "hpqf/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "hpqf/base/error.h"

namespace hpqf::base {
namespace {

[[noreturn]] void fail(const std::string& asked, int error, const std::string& todo) {
  throw Error(asked, std::string("an operation the file system grants; it said: ") + std::strerror(error), todo);
}

// Closes on every way out; close_checked() also reports what close(2) says (NFS reports a full disk only there).
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int close_checked() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// 0 or the errno. write(2) may take less than it was given, and is interrupted by signals.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The rename is on disk only once the folder is. Some file systems refuse fsync on folders (EINVAL): nothing more to do
// there.
void sync_folder(const std::string& path) {
  Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return;
  if (::fsync(folder.get()) != 0 && errno == EIO)
    fail("write " + path, errno, "check the disk: it could not save the folder");
}

int write_temporary(int fd, const std::string& path, std::string_view content) {
  struct stat old {};
  if (::stat(path.c_str(), &old) == 0 && ::fchmod(fd, old.st_mode & 07777) != 0) return errno;
  if (int error = write_all(fd, content)) return error;
  return ::fsync(fd) == 0 ? 0 : errno;
}

// A new file beside `path`, its name unique in this process; one that a killed process with our number left is passed
// over. (mkstemp would make it 0600 and hide the caller's umask.)
int open_temporary(const std::string& path, std::string& name) {
  static std::atomic<uint64_t> counter{0};
  for (;;) {
    name = path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

// A device, a pipe or a terminal is written to: a rename would put a file in its place, and root may do even that.
bool written_in_place(const std::string& path) {
  struct stat old {};
  return ::stat(path.c_str(), &old) == 0 && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode);
}

void write_in_place(const std::string& path, std::string_view content) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  int error = file.get() < 0 ? errno : write_all(file.get(), content);
  if (file.get() >= 0 && file.close_checked() != 0 && error == 0) error = errno;
  if (error != 0) fail("write " + path, error, "choose a place that can be written");
}

}  // namespace

std::string read_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail("read " + path, errno, "check the path and its permissions");
  std::string out;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read " + path, errno, "check that it is a readable file");
    if (n == 0) return out;
    out.append(buffer, static_cast<size_t>(n));
  }
}

void atomic_write(const std::string& path, std::string_view content) {
  if (written_in_place(path)) return write_in_place(path, content);
  const std::string asked = "write " + path;
  const std::string todo =
      "free disk space or choose a folder that exists and can be written; the old file is untouched";
  std::string temporary;
  Descriptor file(open_temporary(path, temporary));
  if (file.get() < 0) fail(asked, errno, todo);
  int error = write_temporary(file.get(), path, content);
  if (file.close_checked() != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    fail(asked, error, todo);
  }
  sync_folder(path);
}

std::string cache_file(const std::string& name) {
  const char* base = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (base && *base) return std::string(base) + "/hpqf/" + name;
  if (home && *home) return std::string(home) + "/.cache/hpqf/" + name;
  return "";
}

LineAppender::LineAppender(const std::string& path, bool truncate) : path_(path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (truncate ? O_TRUNC : 0), 0666);
  if (fd_ < 0) fail("append to " + path, errno, "choose a folder that exists and can be written");
}
LineAppender::~LineAppender() {
  if (fd_ >= 0) ::close(fd_);
}
LineAppender::LineAppender(LineAppender&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

void LineAppender::append(std::string_view line) {
  std::string whole(line);
  whole += '\n';
  if (int error = write_all(fd_, whole)) fail("append to " + path_, error, "free disk space, then resume the run");
}
void LineAppender::flush() {
  if (::fsync(fd_) != 0 && errno != EINVAL) fail("flush " + path_, errno, "check the disk");
}

}  // namespace hpqf::base
