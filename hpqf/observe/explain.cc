#include "hpqf/observe/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpqf/observe/human.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::observe {
namespace {

using plan::LayerFacts;
using plan::LayerKind;
using plan::LayerPrecision;
using plan::ModelFacts;
using plan::PrecisionPlan;

std::string shown(const std::string& layer) { return layer.empty() ? "(model)" : layer; }

bool is_container(const LayerFacts& layer) { return layer.kind == LayerKind::other && layer.parameters == 0; }

std::string heading(const PrecisionPlan& plan, const ModelFacts& model) {
  std::string text =
      fmt::format("plan: epoch {}, {} rule{}", plan.epoch(), plan.rules().size(), plan.rules().size() == 1 ? "" : "s");
  if (model.layers.empty()) return text + "\n\n";
  int64_t parameters = 0;
  for (const LayerFacts& layer : model.layers) parameters += layer.parameters;
  return text + fmt::format("; model: {}, {} layers, {} parameters\n\n", model.model.empty() ? "?" : model.model,
                            model.layers.size(), human_count(static_cast<double>(parameters)));
}

std::vector<std::string> operand_cells(const LayerPrecision& p) {
  return {formats::to_string(p.input), formats::to_string(p.weight), formats::to_string(p.dgrad),
          formats::to_string(p.wgrad)};
}

constexpr const char* kOtherRoles = "accumulate, saved, master, state and wire are fp32 in every layer\n";

std::string rules_text(const PrecisionPlan& plan) {
  TextTable table({{"layers"}, {"input"}, {"weight"}, {"dgrad"}, {"wgrad"}, {"reason"}});
  Footnotes notes;
  for (const plan::Rule& rule : plan.rules()) {
    std::vector<std::string> cells = operand_cells(rule.precision);
    cells.insert(cells.begin(), rule.layers);
    cells.push_back(notes.cell(rule.precision.reason));
    table.add(std::move(cells));
  }
  return table.text() +
         "\nthe first rule that matches a layer wins; norms, softmax, losses, activations and positions stay in "
         "fp32\n" +
         kOtherRoles + notes.text();
}

std::string resolved_text(const PrecisionPlan& plan, const ModelFacts& model) {
  TextTable table({{"layer"}, {"type"}, {"parameters", true}, {"input"}, {"weight"}, {"dgrad"}, {"wgrad"}, {"reason"}});
  Footnotes notes;
  size_t containers = 0;
  for (const LayerFacts& layer : model.layers) {
    if (is_container(layer)) {
      ++containers;
      continue;
    }
    const LayerPrecision p = plan.at(layer.name, layer.kind);
    std::vector<std::string> cells = operand_cells(p);
    cells.insert(cells.begin(), {shown(layer.name), layer.type, human_count(static_cast<double>(layer.parameters))});
    cells.push_back(notes.cell(p.reason));
    table.add(std::move(cells));
  }
  std::string text = table.text() + '\n' + kOtherRoles;
  if (containers > 0)
    text += fmt::format(
        "{} without parameters not listed: functional ops called in them follow the plan under their name\n",
        containers == 1 ? "1 container" : fmt::format("{} containers", containers));
  return text + notes.text();
}

bool has_gemm(LayerKind kind) {
  return kind == LayerKind::linear || kind == LayerKind::conv || kind == LayerKind::conv_transpose ||
         kind == LayerKind::rnn;
}

// The audited lines of one layer.
class AuditedText {
 public:
  AuditedText(const PrecisionPlan& plan, const AuditReport& audit)
      : plan_(plan), audit_(audit), flops_(audit.counted_flops()), seconds_(audit.base_seconds()) {}

  void layer(const std::string& name, LayerKind kind, bool expected_to_run) {
    const LayerPrecision precision = plan_.at(name, kind);
    bool ran = false;
    for (const AuditRow& row : audit_.rows)
      if (row.layer == name) {
        add(row, kind, precision);
        ran = true;
      }
    if (!ran && expected_to_run) {
      for (const char* role : {"input", "weight", "dgrad", "wgrad"})
        line(name, "-", role, now(precision, role), "did not run", "", "", "", precision.reason);
    }
  }

  std::string text() const {
    std::string text = table_.text();
    if (const std::string foot = notes_.text(); !foot.empty()) text += '\n' + foot;
    return text + '\n' + audit_.totals();
  }

 private:
  static std::string now(const LayerPrecision& p, std::string_view role) {
    for (const plan::RoleField& field : plan::role_fields())
      if (role == field.name) return formats::to_string(p.*field.field);
    return "";
  }

  void line(const std::string& layer, std::string op, std::string role, std::string requested, std::string effective,
            std::string implementation, std::string flops, std::string seconds, const std::string& reason) {
    table_.add({layer == last_ && any_ ? "" : shown(layer), std::move(op), std::move(role), std::move(requested),
                std::move(effective), std::move(implementation), std::move(flops), std::move(seconds),
                notes_.cell(reason)});
    last_ = layer;
    any_ = true;
  }

  void add(const AuditRow& row, LayerKind kind, const LayerPrecision& precision) {
    const std::string flops = row.flops > 0 && flops_ > 0 ? percent(row.flops / flops_) : "-";
    const std::string seconds = seconds_ > 0 ? percent(row.seconds / seconds_) : "-";
    auto one = [&](const char* role, const char* planned, bool b, bool first) {
      const std::string& requested = b ? row.requested_b : row.requested_a;
      line(row.layer, row.op, role, requested, b ? row.effective_b : row.effective_a, row.implementation,
           first ? flops : "", first ? seconds : "", reason(row, precision, planned, requested));
    };
    if (row.pass == Pass::dgrad || row.pass == Pass::wgrad) return one(name(row.pass), name(row.pass), false, true);
    const bool alike = row.requested_a == row.requested_b && row.effective_a == row.effective_b;
    if (row.pass == Pass::backward || (alike && row.flops == 0)) return one(name(row.pass), "", false, true);
    // In other kinds of layers the second operand of a product may be an activation.
    const bool weighted = has_gemm(kind);
    if (alike) return one(weighted ? "input, weight" : "operands", "input", false, true);
    one("input", "input", false, true);  // one GEMM, two roles: its shares stand in the first line
    one("weight", "weight", true, false);
  }

  // Why the plan asked for it, then why something else or something slow ran; and that the plan has moved on since.
  static std::string reason(const AuditRow& row, const LayerPrecision& precision, const char* role,
                            const std::string& requested) {
    const std::string current = now(precision, role);
    if (current.empty() && !row.reason.empty()) return row.reason;  // the plan's reason is about GEMM operands
    std::string text = current.empty() || current == requested ? precision.reason
                                                               : fmt::format("now {}: {}", current, precision.reason);
    if (!row.reason.empty() && row.reason != text) text += (text.empty() ? "" : "; ") + row.reason;
    return text;
  }

  const PrecisionPlan& plan_;
  const AuditReport& audit_;
  double flops_, seconds_;
  TextTable table_{{{"layer"},
                    {"op"},
                    {"role"},
                    {"requested"},
                    {"effective"},
                    {"implementation"},
                    {"FLOPs %", true},
                    {"time %", true},
                    {"reason"}}};
  Footnotes notes_;
  std::string last_;
  bool any_ = false;
};

std::string audited_text(const PrecisionPlan& plan, const ModelFacts& model, const AuditReport& audit) {
  AuditedText text(plan, audit);
  std::vector<std::string> known;
  for (const LayerFacts& layer : model.layers) {
    text.layer(layer.name, layer.kind, has_gemm(layer.kind));
    known.push_back(layer.name);
  }
  for (const AuditRow& row : audit.rows)
    if (std::find(known.begin(), known.end(), row.layer) == known.end()) {
      text.layer(row.layer, LayerKind::other, false);
      known.push_back(row.layer);
    }
  return text.text();
}

}  // namespace

std::string explain(const PrecisionPlan& plan, const ModelFacts& model, const AuditReport* audit) {
  const std::string head = heading(plan, model);
  if (audit) return head + audited_text(plan, model, *audit);
  return head + (model.layers.empty() ? rules_text(plan) : resolved_text(plan, model));
}

}  // namespace hpqf::observe
