// Text that every reader of UTF-8 accepts.
#pragma once
#include <string>
#include <string_view>

#include "hpqf/base/export.h"

namespace hpqf::observe {

// Bytes that are no UTF-8 (overlong forms, surrogates and values above U+10FFFF included) become U+FFFD.
HPQF_API std::string valid_utf8(std::string_view text);

}  // namespace hpqf::observe
