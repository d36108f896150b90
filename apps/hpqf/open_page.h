// Shows a file to the person at this machine.
#pragma once
#include <string>

namespace hpqf::app {

bool has_display();                       // a graphical session is there to show something in
void open_page(const std::string& path);  // with the desktop's own opener; says so when that cannot be started

}  // namespace hpqf::app
