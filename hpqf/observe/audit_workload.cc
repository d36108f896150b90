#include "hpqf/observe/audit_workload.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "hpqf/base/error.h"

namespace hpqf::observe {
namespace {

const plan::LayerFacts* find(const plan::ModelFacts& facts, const std::string& layer) {
  for (const plan::LayerFacts& f : facts.layers)
    if (f.name == layer) return &f;
  return nullptr;
}

struct Passes {
  double forward = 0, dgrad = 0, wgrad = 0, launches = 0;
};

}  // namespace

cost::Workload workload_of(const AuditReport& audit, const plan::ModelFacts& facts, double samples) {
  if (audit.steps < 1 || !(samples > 0))
    throw Error(fmt::format("the work of an audit of {} steps and {} samples", audit.steps, samples),
                "at least one step of at least one sample", "take the audit of a run that trained");
  std::vector<std::pair<std::string, std::string>> order;
  std::map<std::pair<std::string, std::string>, Passes> sums;
  for (const AuditRow& row : audit.rows) {
    if (row.flops == 0) continue;
    const std::pair key(row.layer, row.op);
    const auto [it, added] = sums.try_emplace(key);
    if (added) order.push_back(key);
    Passes& p = it->second;
    switch (row.pass) {
      case Pass::forward:
        p.forward += row.flops;
        p.launches += static_cast<double>(row.calls) / audit.steps;
        break;
      case Pass::dgrad:
        p.dgrad += row.flops;
        break;
      case Pass::wgrad:
        p.wgrad += row.flops;
        break;
      case Pass::backward:  // both products in one
        p.dgrad += row.flops / 2;
        p.wgrad += row.flops / 2;
        break;
    }
  }
  if (order.empty())
    throw Error("the work of an audit without a product", "an audit with rows that have FLOPs",
                "attach a plan to a model with linear, convolution, recurrent or attention layers");

  cost::Workload work;
  work.model = facts.model;
  work.sample = "sample";
  for (const auto& key : order) {
    const Passes& p = sums[key];
    cost::Op op{.layer = key.first, .op = key.second, .kind = plan::LayerKind::other};
    if (const plan::LayerFacts* f = find(facts, key.first)) op.kind = f->kind;
    // A layer that ran in evaluation only has no backward; one that was frozen has no wgrad.
    op.flops = p.forward / samples;
    op.dgrad = p.dgrad > 0;
    op.wgrad = p.wgrad > 0;
    op.launches = p.launches;
    work.ops.push_back(std::move(op));
  }
  cost::Op rest{.layer = "", .op = "parameters"};
  for (const plan::LayerFacts& f : facts.layers) rest.parameters += static_cast<double>(f.parameters);
  work.ops.push_back(std::move(rest));
  work.assumptions.push_back(
      {cost::Basis::measured, fmt::format("FLOPs from the audit of {} steps of the run", audit.steps)});
  work.assumptions.push_back({cost::Basis::assumed,
                              "an audit holds no shapes: traffic to memory is left out, so memory-bound ops "
                              "count as free"});
  return work;
}

double emulated_share(const AuditReport& audit) {
  double emulated = 0, all = 0;
  for (const AuditReport::Share& share : audit.shares()) {
    all += share.flops;
    if (share.emulated) emulated += share.flops;
  }
  return all > 0 ? emulated / all : 0;
}

}  // namespace hpqf::observe
