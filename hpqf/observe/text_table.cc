#include "hpqf/observe/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace hpqf::observe {
namespace {

// Characters, not bytes: layer names may hold any UTF-8.
size_t width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, size_t to, bool right) {
  const std::string blanks(to - width(text), ' ');
  return right ? blanks + text : text + blanks;
}

}  // namespace

void TextTable::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t widest = width(columns_[c].title);
    for (const auto& row : rows_) widest = std::max(widest, width(row[c]));
    widths.push_back(widest);
  }
  std::string text;
  auto line = [&](auto cell) {
    std::string out;
    for (size_t c = 0; c < columns_.size(); ++c) out += (c ? "  " : "") + padded(cell(c), widths[c], columns_[c].right);
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + '\n';
  };
  line([&](size_t c) { return columns_[c].title; });
  line([&](size_t c) { return std::string(widths[c], '-'); });
  for (const auto& row : rows_) line([&](size_t c) { return row[c]; });
  return text;
}

std::string Footnotes::cell(std::string_view text) {
  if (width(text) <= longest_) return std::string(text);
  auto it = std::find(notes_.begin(), notes_.end(), text);
  if (it == notes_.end()) it = notes_.insert(it, std::string(text));
  return fmt::format("[{}]", it - notes_.begin() + 1);
}

std::string Footnotes::text() const {
  std::string text;
  for (size_t i = 0; i < notes_.size(); ++i) text += fmt::format("[{}] {}\n", i + 1, notes_[i]);
  return text;
}

}  // namespace hpqf::observe
