#include "apps/hpqf/open_page.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace hpqf::app {

bool has_display() { return std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr; }

void open_page(const std::string& path) {
  // No shell: the path is an argument, whatever characters it has.
  std::string program = "xdg-open", argument = path;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  if (::posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0 ||
      ::waitpid(child, &status, 0) != child || status != 0) {
    fmt::print(stderr, "xdg-open could not show it; open the file in a browser\n");
  }
}

}  // namespace hpqf::app
