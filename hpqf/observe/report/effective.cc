#include "hpqf/observe/report/effective.h"

#include <algorithm>
#include <map>

namespace hpqf::observe {
namespace {

using plan::LayerKind;

bool has_gemm(LayerKind kind) {
  return kind == LayerKind::linear || kind == LayerKind::conv || kind == LayerKind::conv_transpose ||
         kind == LayerKind::rnn || kind == LayerKind::embedding || kind == LayerKind::attention;
}

std::string of_plan(const plan::LayerPrecision& precision, const char* role) {
  for (const plan::RoleField& field : plan::role_fields())
    if (std::string_view(role) == field.name) return formats::to_string(precision.*field.field);
  return "";
}

// The row that did most of an operand's work, among those whose pass uses the operand.
void audited(const std::vector<const AuditRow*>& rows, Operand operand, OperandFormats& out) {
  const Pass pass = operand == Operand::dgrad ? Pass::dgrad : operand == Operand::wgrad ? Pass::wgrad : Pass::forward;
  const AuditRow* most = nullptr;
  const auto more = [](const AuditRow& a, const AuditRow& b) {
    return a.flops != b.flops ? a.flops > b.flops : a.seconds > b.seconds;
  };
  for (const AuditRow* row : rows)
    if (row->pass == pass && (!most || more(*row, *most))) most = row;
  if (!most) return;
  const auto effective = [&](const AuditRow& row) -> const std::string& {
    return operand == Operand::weight ? row.effective_b : row.effective_a;
  };
  const auto emulated = [](const AuditRow& row) { return row.implementation.starts_with("emulated"); };
  out.requested = operand == Operand::weight ? most->requested_b : most->requested_a;
  out.effective = effective(*most);
  out.emulated = emulated(*most);
  out.implementation = most->implementation;
  out.reason = most->reason;
  for (const AuditRow* row : rows)
    if (row->pass == pass && row->flops > 0 && (effective(*row) != out.effective || emulated(*row) != out.emulated))
      out.mixed = true;
}

}  // namespace

std::string element_format(const std::string& block_format) { return block_format.substr(0, block_format.find('[')); }

std::vector<LayerFormats> layer_formats(const plan::PrecisionPlan* plan, const plan::ModelFacts& facts,
                                        const AuditReport* audit) {
  std::map<std::string, std::vector<const AuditRow*>> rows;
  std::vector<std::string> order;  // layers of the audit as they first ran
  if (audit) {
    for (const AuditRow& row : audit->rows) {
      if (row.flops == 0) continue;  // norms, losses, ...: fp32 by rule
      if (rows[row.layer].empty()) order.push_back(row.layer);
      rows[row.layer].push_back(&row);
    }
  }
  std::vector<LayerFormats> out;
  const auto add = [&](const plan::LayerFacts& facts) {
    LayerFormats layer{facts.name, facts.type, facts.parameters, {}, {}};
    if (plan) {
      const plan::LayerPrecision precision = plan->at(facts.name, facts.kind);
      layer.reason = precision.reason;
      for (size_t i = 0; i < kOperands; ++i) layer.operands[i].requested = of_plan(precision, kOperandNames[i]);
    }
    const auto found = rows.find(facts.name);
    if (found != rows.end()) {
      for (size_t i = 0; i < kOperands; ++i) audited(found->second, static_cast<Operand>(i), layer.operands[i]);
      for (const AuditRow* row : found->second) {
        layer.flops += row->flops;
        layer.seconds += row->seconds;
      }
      rows.erase(found);
    }
    out.push_back(std::move(layer));
  };
  for (const plan::LayerFacts& layer : facts.layers)
    if (has_gemm(layer.kind) || rows.contains(layer.name)) add(layer);
  for (const std::string& name : order)
    if (rows.contains(name)) add({.name = name, .type = "", .kind = LayerKind::other, .parameters = 0});
  return out;
}

}  // namespace hpqf::observe
