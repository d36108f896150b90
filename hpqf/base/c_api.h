// What the functions for plain C callers (ctypes and other foreign-function interfaces) share. Each returns 0, or -1
// for a caller's mistake.
#pragma once
#include <functional>

#include "hpqf/base/export.h"

namespace hpqf::base {

// Runs `body`; no exception crosses into C. 0, or -1 and the text kept for hpqf_last_error().
HPQF_API int c_guarded(const std::function<void()>& body);

}  // namespace hpqf::base

// The text of this thread's last mistake; valid until its next one.
extern "C" HPQF_API const char* hpqf_last_error(void);
