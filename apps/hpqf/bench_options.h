// What every benchmark of `hpqf bench` can be told, and what it refuses before it measures anything.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hpqf::app {

struct BenchOptions {
  int threads = 1;
  int64_t rounds = 15;
  std::string json;  // a file, "-" for stdout instead of the table, "" for none
  bool quiet = false;
};

void add_bench_options(CLI::App& command, BenchOptions& options);

// Error naming the option: a number out of range, a file that cannot be written.
void check(const BenchOptions& options);

int most_threads();  // 64 times the cores: beyond that a number is a slip

// Error: "--OPTION VALUE", `allowed`, "correct --OPTION".
[[noreturn]] void refuse(const std::string& option, const std::string& value, const std::string& allowed);

// Without those that came before. Error when nothing is left.
std::vector<std::string> distinct(const std::string& option, const std::vector<std::string>& values);

}  // namespace hpqf::app
