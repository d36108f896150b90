// How the process of the command line treats memory it frees.
#pragma once

namespace hpqf::app {

void keep_freed_memory();

}  // namespace hpqf::app
