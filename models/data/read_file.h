// A whole file in memory, unpacked when it is gzip.
#pragma once
#include <string>

namespace hpqf::models {

// Error naming the file when it is missing, a directory, unreadable, or its gzip stream is damaged or cut off.
std::string read_file(const std::string& path);

}  // namespace hpqf::models
