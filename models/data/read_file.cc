#include "models/data/read_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "hpqf/base/error.h"

namespace hpqf::models {

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(fmt::format("file '{}'", path), "a file; this is a directory", "name a file in it");
  }
  errno = 0;
  std::unique_ptr<gzFile_s, decltype(&gzclose_r)> file(gzopen(path.c_str(), "rb"), &gzclose_r);
  if (!file) {
    throw Error(fmt::format("file '{}'", path), fmt::format("a file that can be read: {}", std::strerror(errno)),
                "check the path and its permissions");
  }
  gzbuffer(file.get(), 1 << 18);
  std::string content;
  std::size_t size = 0;
  int got = 0;
  do {
    content.resize(size + (1 << 20));
    got = gzread(file.get(), content.data() + size, 1 << 20);
    if (got > 0) size += static_cast<std::size_t>(got);
  } while (got > 0);
  content.resize(size);
  int code = Z_OK;
  const char* message = gzerror(file.get(), &code);  // a stream that was cut off reads to its end and only then says so
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    throw Error(fmt::format("file '{}'", path),
                fmt::format("a whole gzip file; this one is damaged after {} unpacked bytes: {}", size,
                            code == Z_ERRNO ? std::strerror(errno) : message),
                "fetch the file again");
  }
  return content;
}

}  // namespace hpqf::models
