// Layer patterns: names, globs and exact names.
#include "hpqf/plan/plan.h"

namespace hpqf::plan {
namespace {

// Iterative with one backtrack point (the last "*" seen), so a hostile pattern costs at most |pattern| * |text|.
bool glob(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

bool matches(std::string_view pattern, std::string_view layer) {
  if (pattern.starts_with('=')) return pattern.substr(1) == layer;
  // "head.*" is written for "head and what is in it": when head is a leaf there is nothing else it could mean.
  if (pattern.ends_with(".*")) pattern.remove_suffix(2);
  if (glob(pattern, layer)) return true;
  // Everything below a layer that matches: try every ancestor of `layer`.
  for (size_t dot = layer.find('.'); dot != std::string_view::npos; dot = layer.find('.', dot + 1))
    if (glob(pattern, layer.substr(0, dot))) return true;
  return false;
}

}  // namespace hpqf::plan
