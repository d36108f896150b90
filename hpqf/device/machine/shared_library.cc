#include "hpqf/device/machine/shared_library.h"

#include <dlfcn.h>

namespace hpqf::device::machine {

SharedLibrary::SharedLibrary(const std::string& file) : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_) return;
  const char* why = dlerror();
  error_ = why ? why : "cannot be loaded";
}

SharedLibrary::~SharedLibrary() {
  if (handle_) dlclose(handle_);
}

void* SharedLibrary::address(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }

}  // namespace hpqf::device::machine
