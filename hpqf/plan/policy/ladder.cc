#include "hpqf/plan/policy/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "hpqf/base/error.h"

namespace hpqf::plan {
namespace {

struct Trouble {
  std::string cause;
  double seen = 0, limit = 0;
  bool hard = false;     // acts at once
  int64_t patience = 1;  // otherwise: after so many steps in a row
  std::string text;
};

bool gradient(Operand operand) { return operand == Operand::dgrad || operand == Operand::wgrad; }

double share(int64_t count, int64_t elements) {
  return elements > 0 ? static_cast<double>(count) / static_cast<double>(elements) : 0;
}

// The worst thing a record shows: non-finite results first, then hard limits, then soft ones.
std::optional<Trouble> trouble_of(const OperandHealth& h, const LadderRules& rules) {
  if (h.nonfinite > 0) {
    const bool wait = gradient(h.operand);
    return Trouble{
        "nonfinite", static_cast<double>(h.nonfinite), 0,
        !wait,       rules.gradient_patience,          fmt::format("{} finite values became non-finite", h.nonfinite)};
  }
  std::vector<Trouble> all;
  auto above = [&](const char* cause, double seen, const Limit& limit) {
    if (seen <= limit.soft) return;
    const bool hard = !(seen <= limit.hard);  // NaN too
    const double allowed = hard ? limit.hard : limit.soft;
    all.push_back(
        {cause, seen, allowed, hard, rules.patience, fmt::format("{} {:.3g} above {}", cause, seen, allowed)});
  };
  above("saturation", share(h.saturated, h.elements), rules.saturation);
  above("underflow", share(h.underflow, h.elements), rules.underflow);
  if (h.drift) above("drift", *h.drift, rules.drift);
  if (h.sqnr_db && !(*h.sqnr_db >= rules.sqnr_db.soft)) {
    const bool hard = !(*h.sqnr_db >= rules.sqnr_db.hard);
    const double allowed = hard ? rules.sqnr_db.hard : rules.sqnr_db.soft;
    all.push_back({"sqnr", *h.sqnr_db, allowed, hard, rules.patience,
                   fmt::format("signal to noise {:.3g} dB below {} dB", *h.sqnr_db, allowed)});
  }
  const auto worst = std::find_if(all.begin(), all.end(), [](const Trouble& t) { return t.hard; });
  if (worst != all.end()) return *worst;
  if (all.empty()) return std::nullopt;
  return all.front();
}

bool is_calm(const OperandHealth& h, const LadderRules& rules) {
  const double part = rules.release;
  if (h.nonfinite > 0 || share(h.saturated, h.elements) > part * rules.saturation.soft ||
      share(h.underflow, h.elements) > part * rules.underflow.soft ||
      (h.drift && !(*h.drift <= part * rules.drift.soft)))
    return false;
  // Half of the noise power is 3 dB more.
  return !h.sqnr_db || *h.sqnr_db >= rules.sqnr_db.soft - 10 * std::log10(part);
}

bool watched(Operand operand, Scope scope) {
  if (scope == Scope::dgrad) return operand == Operand::dgrad;
  if (scope == Scope::wgrad) return operand == Operand::wgrad;
  return true;
}

struct Key {
  std::string layer;
  std::vector<Operand> operands;
};

class Reaction {
 public:
  Reaction(const PrecisionPlan& plan, const LadderState& state, int64_t step, std::span<const OperandHealth> health,
           const LadderRules& rules)
      : plan_(plan), step_(step), rules_(rules), decision_{plan, state, {}} {
    for (const OperandHealth& h : health)
      if (watched(h.operand, rules.scope)) records_[key_of(h.layer, h.operand)].push_back(h);
  }

  LadderDecision run() {
    std::set<std::string> keys;
    for (const auto& [key, track] : decision_.state.tracks) keys.insert(key);
    for (const auto& [key, records] : records_) keys.insert(key);
    for (const std::string& key : keys) advance(key);
    decision_.plan = apply_changes(plan_, decision_.changes);
    return std::move(decision_);
  }

 private:
  std::string key_of(const std::string& layer, Operand operand) const {
    return rules_.scope == Scope::layer ? layer : fmt::format("{} {}", layer, name(operand));
  }

  Key parts(const std::string& key) const {
    if (rules_.scope == Scope::layer) return {key, {kOperands.begin(), kOperands.end()}};
    const size_t space = key.rfind(' ');
    return {key.substr(0, space), {parse_operand(key.substr(space + 1), "ladder state")}};
  }

  void advance(const std::string& key) {
    LadderTrack& track = decision_.state.tracks[key];
    const Key what = parts(key);
    forget_what_others_changed(track, what.layer);
    track.since_change += 1;
    std::optional<Trouble> worst;
    Operand culprit = Operand::weight;
    bool calm = true;
    for (const OperandHealth& h : records_[key]) {
      calm &= is_calm(h, rules_);
      const auto found = trouble_of(h, rules_);
      if (!found || (worst && (worst->hard || !found->hard))) continue;
      worst = found;
      culprit = h.operand;
    }
    const bool cooling = !track.now.empty() && track.since_change <= rules_.cool_down;
    if (worst && (worst->hard || !cooling)) {
      track.strikes += 1;
      if (worst->hard || track.strikes >= worst->patience) raise(track, what, culprit, *worst);
    } else {
      track.strikes = 0;
    }
    track.calm_steps = calm ? track.calm_steps + 1 : 0;
    if (!track.path.empty() && track.calm_steps >= track.calm_needed) give_back(track, what.layer);
    if (track.now.empty() && track.strikes == 0 && track.calm_needed == 0) decision_.state.tracks.erase(key);
  }

  void forget_what_others_changed(LadderTrack& track, const std::string& layer) const {
    const LayerPrecision precision = plan_.at(layer);
    for (auto it = track.now.begin(); it != track.now.end();) {
      if (formats::to_string(format_of(precision, it->first)) == it->second) {
        ++it;
        continue;
      }
      track.path.erase(it->first);
      it = track.now.erase(it);
    }
  }

  void raise(LadderTrack& track, const Key& what, Operand culprit, const Trouble& trouble) {
    track.strikes = 0;
    const LayerPrecision precision = plan_.at(what.layer);
    bool changed = false;
    for (Operand operand : what.operands) {
      const BlockFormat& now = format_of(precision, operand);
      const auto next = rung_above(rules_.ladder, now);
      if (!next) continue;  // the top
      const std::string from = formats::to_string(now), to = formats::to_string(*next);
      std::string reason = fmt::format("{} at step {}", trouble.text, step_);
      if (culprit != operand) reason += fmt::format(", in {}", name(culprit));
      decision_.changes.push_back({what.layer,
                                   operand,
                                   from,
                                   to,
                                   trouble.cause,
                                   {{"seen", trouble.seen}, {"limit", trouble.limit}},
                                   std::move(reason)});
      track.path[operand].push_back(from);
      track.now[operand] = to;
      changed = true;
    }
    if (!changed) return;
    if (track.calm_needed == 0) track.calm_needed = rules_.calm;
    if (track.came_back) track.calm_needed = std::min(2 * track.calm_needed, rules_.calm_most);
    track.came_back = false;
    track.since_change = 0;
    track.calm_steps = 0;
  }

  void give_back(LadderTrack& track, const std::string& layer) {
    // Operands that went up the most come down first, so that those of a layer return together as they rose.
    size_t longest = 0;
    for (const auto& [operand, path] : track.path) longest = std::max(longest, path.size());
    for (auto it = track.path.begin(); it != track.path.end();) {
      auto& [operand, path] = *it;
      if (path.size() < longest) {
        ++it;
        continue;
      }
      const std::string from = track.now[operand], to = path.back();
      decision_.changes.push_back(
          {layer,
           operand,
           from,
           to,
           "calm",
           {{"seen", static_cast<double>(track.calm_steps)}, {"limit", static_cast<double>(track.calm_needed)}},
           fmt::format("{} calm steps up to step {}", track.calm_steps, step_)});
      path.pop_back();
      track.now[operand] = to;
      if (!path.empty()) {
        ++it;
        continue;
      }
      track.now.erase(operand);
      it = track.path.erase(it);
    }
    track.came_back = true;
    track.since_change = 0;
    track.calm_steps = 0;
  }

  const PrecisionPlan& plan_;
  int64_t step_;
  const LadderRules& rules_;
  LadderDecision decision_;
  std::map<std::string, std::vector<OperandHealth>> records_;
};

}  // namespace

LadderRules with_fallback_threshold(LadderRules rules, double share) {
  if (!(share > 0 && share <= 1))
    throw Error(fmt::format("fallback_threshold = {}", share), "a share of the elements, above 0 and up to 1",
                "use e.g. 0.01");
  rules.saturation = {share, std::max(share, rules.saturation.hard)};
  rules.underflow = {share, std::max(share, rules.underflow.hard)};
  return rules;
}

void check(const LadderRules& rules) {
  auto require = [](bool good, const char* name, double value, const char* allowed) {
    if (!good) throw Error(fmt::format("fallback ladder: {} = {}", name, value), allowed, "use the default");
  };
  for (const auto& [name, limit] :
       {std::pair{"saturation", rules.saturation}, {"underflow", rules.underflow}, {"drift", rules.drift}}) {
    require(limit.soft >= 0 && std::isfinite(limit.soft), name, limit.soft, "a soft limit of 0 or more");
    require(limit.hard >= limit.soft, name, limit.hard, "a hard limit not below the soft one");
  }
  require(rules.sqnr_db.hard <= rules.sqnr_db.soft, "sqnr_db", rules.sqnr_db.hard,
          "a hard limit not above the soft one");
  require(rules.patience >= 1, "patience", static_cast<double>(rules.patience), "1 step or more");
  require(rules.gradient_patience >= 1, "gradient_patience", static_cast<double>(rules.gradient_patience),
          "1 step or more");
  require(rules.cool_down >= 0, "cool_down", static_cast<double>(rules.cool_down), "0 steps or more");
  require(rules.calm >= 1, "calm", static_cast<double>(rules.calm), "1 step or more");
  require(rules.calm_most >= rules.calm, "calm_most", static_cast<double>(rules.calm_most), "calm or more");
  require(rules.release > 0 && rules.release <= 1, "release", rules.release, "above 0 and up to 1");
  check(rules.ladder);
}

LadderDecision react(const PrecisionPlan& plan, const LadderState& state, int64_t step,
                     std::span<const OperandHealth> health, const LadderRules& rules) {
  check(rules);
  if (!rules.enabled) return {plan, state, {}};
  return Reaction(plan, state, step, health, rules).run();
}

}  // namespace hpqf::plan
