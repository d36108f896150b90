// The fixed parts of the page.
#pragma once
#include <string_view>

namespace hpqf::observe {

std::string_view page_style();
std::string_view page_script();

}  // namespace hpqf::observe
