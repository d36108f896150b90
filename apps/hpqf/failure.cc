#include "apps/hpqf/failure.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "hpqf/base/error.h"
#include "hpqf/base/text.h"

namespace hpqf::app {
namespace {

void print(const Error& error) { fmt::print(stderr, "hpqf: error\n{}\n", error.what()); }

// The command that was being read: the deepest one that was named.
const CLI::App& deepest(const CLI::App& app) {
  const std::vector<CLI::App*> named = app.get_subcommands();
  return named.empty() ? app : deepest(*named.front());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() ? full_name(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

std::string quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += fmt::format("{}'{}'", text.empty() ? "" : " ", word);
  return text;
}

// What the command takes: its options when the stray word is one, else its commands.
std::vector<std::string> known_words(const CLI::App& command, const std::string& stray) {
  std::vector<std::string> names;
  if (stray.starts_with("-")) {
    for (const CLI::Option* option : command.get_options()) {
      if (!option->get_lnames().empty()) names.push_back("--" + option->get_lnames().front());
    }
  } else {
    for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(sub->get_name());
    }
  }
  return names;
}

std::string allowed_instead(const CLI::App& command, const std::string& stray) {
  const std::vector<std::string> names = known_words(command, stray.substr(0, stray.find('=')));
  if (names.empty()) return "no further words after what this command takes";
  return fmt::format("for example {}", fmt::join(base::nearest(names, stray.substr(0, stray.find('='))), ", "));
}

}  // namespace

int report_bad_command_line(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = deepest(app);
  const std::vector<std::string> stray = app.remaining(/*recurse=*/true);
  const std::string name = full_name(command);
  const std::string help = fmt::format("{} --help shows the options and examples", name);
  // A word too many that follows a missing command is what was meant as that command.
  if (!stray.empty()) {
    print({fmt::format("{} {}", name, quoted(stray)), allowed_instead(command, stray.front()), help});
  } else {
    print({name, error.what(), help});
  }
  return kCallerMistake;
}

int report_failure() {
  try {
    throw;
  } catch (const Error& e) {
    print(e);
    return kCallerMistake;
  } catch (const std::bad_alloc&) {
    print({"more memory than there is", "what this machine has", "use a smaller --batch-size or --limit"});
  } catch (const c10::Error& e) {
    const std::string what = e.what_without_backtrace();
    // torch's allocator throws its own type, known only by this text.
    if (what.find("DefaultCPUAllocator") != std::string::npos) {
      print({"more memory than there is", "what this machine has", "use a smaller --batch-size or --limit"});
    } else {
      print({"an operation that torch refused", what, "if the input is in order, report this as a defect of hpqf"});
    }
  } catch (const std::exception& e) {
    print({"something that failed inside hpqf", e.what(), "if the input is in order, report this as a defect of hpqf"});
  } catch (...) {
    print({"something that failed inside hpqf", "no further information", "report this as a defect of hpqf"});
  }
  return kFailure;
}

}  // namespace hpqf::app
