#include "hpqf/observe/run/lines.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "hpqf/base/error.h"

namespace hpqf::observe {

LinesRead for_each_line(const std::string& path, const std::function<void(std::string_view)>& use) {
  const auto fail = [&] {
    throw Error("read " + path, std::string("a readable file; the file system said: ") + std::strerror(errno),
                "check the path and its permissions");
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) fail();
  LinesRead read;
  std::string rest;       // of a line that began in an earlier piece
  bool dropping = false;  // inside a line that is too long
  char piece[1 << 16];
  for (;;) {
    const size_t size = std::fread(piece, 1, sizeof piece, file.get());
    if (size == 0) break;
    std::string_view left(piece, size);
    while (!left.empty()) {
      const size_t end = left.find('\n');
      const std::string_view part = left.substr(0, end);
      left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
      if (dropping || rest.size() + part.size() > kLongestLine) {
        dropping = true;
        rest.clear();
      } else if (end == std::string_view::npos || !rest.empty()) {
        rest += part;
      }
      if (end == std::string_view::npos) break;
      if (dropping) {
        ++read.too_long;
      } else {
        use(rest.empty() ? part : rest);
        ++read.lines;
      }
      dropping = false;
      rest.clear();
    }
  }
  if (std::ferror(file.get())) fail();
  read.torn = dropping || !rest.empty();
  return read;
}

}  // namespace hpqf::observe
