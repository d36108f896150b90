// PrecisionPlan: for each layer and role a block format, with the reason. A value: printable, JSON, diffable,
// comparable.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/formats/block_format.h"
#include "hpqf/plan/role.h"

namespace hpqf::plan {

struct HPQF_API LayerPrecision {
  BlockFormat weight, input;
  // Format of the output gradient in the two backward GEMMs. fp32 makes that whole GEMM run on unrounded operands.
  BlockFormat dgrad, wgrad;
  BlockFormat saved, master, state, wire;
  Format accumulate = Format::fp32;
  std::string reason;
  bool operator==(const LayerPrecision& o) const = default;  // the reason counts too
  bool same_formats(const LayerPrecision& o) const;          // ... here it does not
  bool all_fp32() const;                                     // nothing to round in forward or backward
};

// The block formats of a LayerPrecision by their JSON names, in the order in which they are written.
struct RoleField {
  const char* name;
  BlockFormat LayerPrecision::*field;
};
HPQF_API std::span<const RoleField> role_fields();

// Error, naming `where`, when this version cannot train with such formats: accumulate, saved, master, state and wire
// other than fp32; blocks that formats::check refuses; blocks of one element.
HPQF_API void check(const LayerPrecision& precision, std::string_view where);

// weight, input and both gradients in `format`, a block format as text; "fp8" gives e4m3 forward and e5m2 gradients;
// all else fp32. Error for anything else; "auto" is no format (what chooses formats needs the model).
HPQF_API LayerPrecision uniform_precision(std::string_view format, std::string reason = "");

// "conv1" matches that layer and everything below it, and so does "conv1.*"; "*" matches any run of characters, dots
// too; "?" one.
// "=conv1" matches that layer alone, character by character ("=" is the model itself).
struct Rule {
  std::string layers;
  LayerPrecision precision;
  bool operator==(const Rule&) const = default;
};
HPQF_API bool matches(std::string_view pattern, std::string_view layer);

struct Change {  // one line of a diff
  std::string layer;
  std::string role;  // "weight", "input", "dgrad", ...
  std::string from, to, reason;
};
using PlanDiff = std::vector<Change>;
HPQF_API std::string to_string(const PlanDiff& diff);

// Total: every layer and role resolves; the first matching rule wins, the last rule is "*". Layers of kind norm,
// softmax, loss and activation resolve to fp32 whatever the rules say (reason "rule: ... in fp32").
class HPQF_API PrecisionPlan {
 public:
  PrecisionPlan();                                  // all fp32
  explicit PrecisionPlan(std::vector<Rule> rules);  // Error when the last rule is not "*" or a rule is impossible
  static PrecisionPlan uniform(std::string_view format, std::string reason = "");
  // What users write: one precision, for `reason`, and some layers kept at fp32.
  static PrecisionPlan with_sensitive(std::string_view format, const std::vector<std::string>& sensitive,
                                      std::string reason = "asked by the user");

  LayerPrecision at(std::string_view layer, LayerKind kind = LayerKind::other) const;
  const std::vector<Rule>& rules() const { return rules_; }
  int64_t epoch() const { return epoch_; }

  // A new plan, epoch + 1, in which `rule` goes before all others.
  PrecisionPlan with_rule(Rule rule) const;

  // What `other` changes, layer by layer and role by role; reasons are not compared. Without layers in `model` the
  // rules are compared by pattern instead.
  PlanDiff diff(const PrecisionPlan& other, const ModelFacts& model) const;
  void check(const ModelFacts& model) const;  // Error naming a pattern that matches no layer, with the nearest names

  // Schema "hpqf.plan" version 1; with a resolved table when the model is given. Reading takes two shorthands in a
  // rule: "precision" sets weight, input, dgrad and wgrad, "output_grad" both gradients; the more specific key wins and
  // roles left out are fp32.
  std::string to_json(const ModelFacts* model = nullptr) const;
  static PrecisionPlan from_json(std::string_view text, std::string_view where = "plan");  // Error with the place
  static PrecisionPlan load(const std::string& path);
  bool operator==(const PrecisionPlan&) const = default;

 private:
  std::vector<Rule> rules_;
  int64_t epoch_ = 0;
};

// The layers of a plan file that carries a resolved table (`layers`); empty when it has none. Error with the place.
HPQF_API ModelFacts model_facts_from_json(std::string_view text, std::string_view where = "plan");

}  // namespace hpqf::plan

namespace hpqf {
using plan::LayerPrecision;
using plan::PrecisionPlan;
using plan::Role;
}  // namespace hpqf
