// Aligned columns and numbered footnotes for terminals.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::observe {

class HPQF_API TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;  // numbers
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);  // as many as there are columns
  std::string text() const;                  // a title line, a rule, the rows; no trailing blanks

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Long texts would push a table off the screen: they move below it, each once.
class HPQF_API Footnotes {
 public:
  explicit Footnotes(size_t longest = 40) : longest_(longest) {}
  std::string cell(std::string_view text);  // the text itself, or "[n]" when it is longer than `longest` characters
  std::string text() const;                 // "[1] ...\n[2] ...\n"

 private:
  size_t longest_;
  std::vector<std::string> notes_;
};

}  // namespace hpqf::observe
