// Where the database that came with this library lies: found from where the library itself was loaded from, so that
// a tree can be moved.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "hpqf/device/database.h"

namespace hpqf::device {

std::string shipped_database() {
  namespace fs = std::filesystem;
  Dl_info info{};
  // Any address inside this library will do.
  if (dladdr(reinterpret_cast<const void*>(&shipped_database), &info) == 0 || !info.dli_fname) info.dli_fname = "";
  std::error_code ignored;
  const fs::path library = fs::weakly_canonical(info.dli_fname, ignored).parent_path();
  // The first is the layout of the wheel and of the build tree; the second is where this build installs, as seen from
  // its library folder.
  const fs::path places[] = {library / "data" / "devices", library / HPQF_DEVICES_FROM_LIBRARY};
  std::vector<std::string> tried;
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place / "fields.json", ignored)) return place.lexically_normal().string();
    tried.push_back(place.lexically_normal().string());
  }
  throw Error("the device database", fmt::format("one of {}", fmt::join(tried, ", ")),
              "install hpqf again, or name a database (--database DIR on the command line)");
}

}  // namespace hpqf::device
