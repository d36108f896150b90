// How the command line fails: three parts on stderr and an exit code, never a raw exception.
#pragma once

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace hpqf::app {

inline constexpr int kFailure = 1;        // out of memory, a defect, ...
inline constexpr int kCallerMistake = 2;  // hpqf::Error, or a command line that cannot be read

// For the exception in flight. Returns the exit code.
int report_failure();
int report_bad_command_line(const CLI::App& app, const CLI::ParseError& error);

}  // namespace hpqf::app
