#include "hpqf/base/c_api.h"

#include <exception>
#include <string>

namespace {
thread_local std::string last_error;
}

int hpqf::base::c_guarded(const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& e) {
    last_error = e.what();
    return -1;
  }
}

extern "C" const char* hpqf_last_error(void) { return last_error.c_str(); }
