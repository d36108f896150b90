// Layer patterns: names, globs and exact names.
#include "hpqf/base/text.h"
#include "hpqf/plan/plan.h"

namespace hpqf::plan {

bool matches(std::string_view pattern, std::string_view layer) {
  if (pattern.starts_with('=')) return pattern.substr(1) == layer;
  // "head.*" is written for "head and what is in it": when head is a leaf there is nothing else it could mean.
  if (pattern.ends_with(".*")) pattern.remove_suffix(2);
  if (base::glob(pattern, layer)) return true;
  // Everything below a layer that matches: try every ancestor of `layer`.
  for (size_t dot = layer.find('.'); dot != std::string_view::npos; dot = layer.find('.', dot + 1))
    if (base::glob(pattern, layer.substr(0, dot))) return true;
  return false;
}

}  // namespace hpqf::plan
