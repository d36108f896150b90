#include "hpqf/plan/allocate/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hpqf/base/error.h"

namespace hpqf::plan::knapsack {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kScaleBits = 32, kPow2ScaleBits = 8;
constexpr double kNanoseconds = 1e9;

const BlockFormat kFp32{};

// As stored: codes in their lanes and the scales of blocks along a flat weight. Scales of whole rows are left out (the
// record has no shapes; they are one number for each output).
int64_t stored_bits(int64_t weights, const BlockFormat& format) {
  int64_t scales = 0;
  if (format.shape == formats::BlockShape::tensor) scales = 1;
  if (format.shape == formats::BlockShape::vector) scales = (weights + format.block - 1) / format.block;
  return weights * formats::storage_bits(format.format) +
         scales * (format.scale == formats::ScaleType::pow2 ? kPow2ScaleBits : kScaleBits);
}

int code_bits(const BlockFormat& format) { return formats::info(format.format).bits; }

int64_t layer_cost(Kind kind, const LayerSensitivity& layer, const LayerPrecision& p, const Slot& slot,
                   const Times& times) {
  const bool decides_weight =
      std::find(slot.operands.begin(), slot.operands.end(), Operand::weight) != slot.operands.end();
  if (kind == Kind::bits) return decides_weight ? layer.weights * code_bits(p.weight) : 0;
  if (kind == Kind::bytes) return decides_weight ? stored_bits(layer.weights, p.weight) : 0;
  if (kind == Kind::bops) return layer.macs * code_bits(p.weight) * code_bits(p.input);
  for (const LayerTime& t : times.layers)
    if (t.layer == layer.name && t.weight == p.weight && t.input == p.input && t.dgrad == p.dgrad && t.wgrad == p.wgrad)
      return static_cast<int64_t>(std::ceil(t.seconds * kNanoseconds));
  throw Error(fmt::format("the time of layer \"{}\" in {}/{}/{}/{} (weight/input/dgrad/wgrad)", layer.name,
                          formats::to_string(p.weight), formats::to_string(p.input), formats::to_string(p.dgrad),
                          formats::to_string(p.wgrad)),
              "a measured time for each layer and the formats that it may take",
              "measure it, or lock the layer in formats that were measured");
}

class Builder {
 public:
  Builder(const Sensitivity& s, const Budget& budget, const AllocationOptions& options)
      : s_(s), options_(options), joint_time_(budget.seconds.has_value()), joint_bops_(budget.bops.has_value()) {
    add(Kind::bits, budget.bits);
    add(Kind::bytes, budget.bytes);
    add(Kind::seconds, budget.seconds);
    add(Kind::bops, budget.bops);
    if (kinds_.empty()) minimise_alone();
    if (options.training)
      for (Admission& a : admit(s, *options.training))
        if (a.allowed) admitted_[a.layer].push_back({a.operand, a.format});
  }

  Choices build() {
    Choices c;
    for (const LayerSensitivity& layer : s_.layers) c.weights += static_cast<double>(layer.weights);
    c.kinds = kinds_;
    for (const auto& group : groups_of_layers()) add_slots(group, c);
    for (size_t b = 0; b < kinds_.size(); ++b)
      c.problem.limits.push_back(limits_[b] ? units(c, kinds_[b], *limits_[b]) : kNoLimit);
    if (joint_time_) add_edges(c);
    return c;
  }

 private:
  void add(Kind kind, const std::optional<double>& limit) {
    if (!limit) return;
    kinds_.push_back(kind);
    limits_.push_back(limit);
  }

  // A budget of loss alone: `minimise` is the cost, without a limit yet.
  void minimise_alone() {
    for (Kind kind : {Kind::bits, Kind::bytes, Kind::seconds, Kind::bops})
      if (options_.minimise == name(kind)) {
        kinds_.push_back(kind);
        limits_.push_back(std::nullopt);
        joint_time_ = kind == Kind::seconds;
        joint_bops_ = kind == Kind::bops;
        return;
      }
    throw Error(fmt::format("to minimise \"{}\"", options_.minimise), "bits, bytes, seconds or bops",
                "name one of these costs");
  }

  std::vector<std::vector<size_t>> groups_of_layers() const {
    std::vector<std::vector<size_t>> groups;
    std::map<std::string, size_t> tied;  // layer to its group
    for (size_t i = 0; i < s_.layers.size(); ++i) {
      const std::string& layer = s_.layers[i].name;
      if (const auto it = tied.find(layer); it != tied.end()) {
        groups[it->second].push_back(i);
        continue;
      }
      groups.push_back({i});
      for (const auto& tie : s_.ties)
        if (std::find(tie.begin(), tie.end(), layer) != tie.end())
          for (const std::string& other : tie) tied[other] = groups.size() - 1;
    }
    return groups;
  }

  const Lock* lock_of(const LayerSensitivity& layer) const {
    for (const Lock& lock : options_.locks)
      if (matches(lock.layers, layer.name)) return &lock;
    return nullptr;
  }

  // Formats that every layer of the group may take for this operand.
  std::vector<BlockFormat> menu(const std::vector<size_t>& group, Operand operand) const {
    std::vector<BlockFormat> wanted;
    if (operand == Operand::weight) wanted = options_.weight;
    if (operand == Operand::input) wanted = options_.input;
    if (wanted.empty())
      for (const FormatScore& score : s_.layers[group[0]].scores)
        if (score.operand == operand) wanted.push_back(score.format);
    std::vector<BlockFormat> usable;
    for (const BlockFormat& format : wanted)
      if (std::isfinite(loss_of(group, operand, format))) usable.push_back(format);
    if (usable.empty()) usable.push_back(kFp32);  // nothing measured, or all of it forbidden
    return usable;
  }

  double loss_of(const LayerSensitivity& layer, Operand operand, const BlockFormat& format) const {
    if (format == kFp32) return 0;
    if (options_.training) {
      const auto it = admitted_.find(layer.name);
      const std::pair<Operand, BlockFormat> wanted{operand, format};
      if (it == admitted_.end() || std::find(it->second.begin(), it->second.end(), wanted) == it->second.end())
        return kInfinity;
    }
    const double score = solver_score(layer, operand, format, options_.standard_errors);
    return options_.forbid_above && score > *options_.forbid_above ? kInfinity : score;
  }

  double loss_of(const std::vector<size_t>& group, Operand operand, const BlockFormat& format) const {
    double sum = 0;
    for (size_t i : group) sum += loss_of(s_.layers[i], operand, format);
    return sum;
  }

  // One choice of a slot: formats for its operands, and what each layer loses.
  void add_choice(Slot& slot, const LayerPrecision& precision) const {
    std::vector<double> losses;
    for (size_t i : slot.layers) {
      double sum = 0;
      for (Operand operand : slot.operands) sum += loss_of(s_.layers[i], operand, format_of(precision, operand));
      losses.push_back(sum);
    }
    slot.choices.push_back(precision);
    slot.losses.push_back(std::move(losses));
  }

  void add_slots(const std::vector<size_t>& group, Choices& c) const {
    const Lock* lock = nullptr;
    for (size_t i : group)
      if (!lock) lock = lock_of(s_.layers[i]);
    if (lock) {
      Slot slot{group, {}, {kOperands.begin(), kOperands.end()}, {}, lock->reason.empty() ? "locked" : lock->reason};
      slot.choices.push_back(lock->precision);
      slot.losses.emplace_back();
      // What a lock costs in loss is known only where it was measured; it is the same for every plan.
      for (size_t i : group) {
        double sum = 0;
        for (Operand operand : kOperands)
          if (find_score(s_.layers[i], operand, format_of(lock->precision, operand)))
            sum += solver_score(s_.layers[i], operand, format_of(lock->precision, operand), options_.standard_errors);
        slot.losses.back().push_back(std::isfinite(sum) ? sum : 0);
      }
      finish(std::move(slot), c);
    } else if (joint_time_) {
      Slot slot{group, {}, {kOperands.begin(), kOperands.end()}, {}, ""};
      for (const LayerTime& t : options_.times.layers) {
        if (t.layer != s_.layers[group[0]].name) continue;
        LayerPrecision p;
        p.weight = t.weight, p.input = t.input, p.dgrad = t.dgrad, p.wgrad = t.wgrad;
        if (in_menus(p) && timed(group, p)) add_choice(slot, p);
      }
      if (slot.choices.empty())
        throw Error(fmt::format("a budget of seconds for layer \"{}\"", s_.layers[group[0]].name),
                    "measured times for each layer that is not locked", "measure its times, or lock the layer");
      finish(std::move(slot), c);
    } else if (joint_bops_) {
      Slot slot{group, {}, {Operand::weight, Operand::input}, {}, ""};
      for (const BlockFormat& w : menu(group, Operand::weight))
        for (const BlockFormat& x : menu(group, Operand::input)) {
          LayerPrecision p;
          p.weight = w, p.input = x;
          add_choice(slot, p);
        }
      finish(std::move(slot), c);
    } else {
      add_operand(group, Operand::weight, c);
      if (!options_.input.empty()) add_operand(group, Operand::input, c);
    }
  }

  void add_operand(const std::vector<size_t>& group, Operand operand, Choices& c) const {
    Slot slot{group, {}, {operand}, {}, ""};
    for (const BlockFormat& format : menu(group, operand)) {
      LayerPrecision p;
      format_of(p, operand) = format;
      add_choice(slot, p);
    }
    finish(std::move(slot), c);
  }

  bool in_menus(const LayerPrecision& p) const {
    auto listed = [](const std::vector<BlockFormat>& menu, const BlockFormat& format) {
      return menu.empty() || std::find(menu.begin(), menu.end(), format) != menu.end();
    };
    return listed(options_.weight, p.weight) && listed(options_.input, p.input);
  }

  bool timed(const std::vector<size_t>& group, const LayerPrecision& p) const {
    return std::all_of(group.begin(), group.end(), [&](size_t i) {
      return std::any_of(options_.times.layers.begin(), options_.times.layers.end(), [&](const LayerTime& t) {
        return t.layer == s_.layers[i].name && t.weight == p.weight && t.input == p.input && t.dgrad == p.dgrad &&
               t.wgrad == p.wgrad;
      });
    });
  }

  void finish(Slot slot, Choices& c) const {
    Group group;
    for (size_t k = 0; k < slot.choices.size(); ++k) {
      Choice choice;
      for (double loss : slot.losses[k]) choice.loss += loss;
      for (Kind kind : kinds_) {
        int64_t sum = 0;
        for (size_t i : slot.layers) sum += layer_cost(kind, s_.layers[i], slot.choices[k], slot, options_.times);
        choice.cost.push_back(sum);
      }
      group.push_back(std::move(choice));
    }
    if (std::none_of(group.begin(), group.end(), [](const Choice& choice) { return std::isfinite(choice.loss); }))
      throw Error(fmt::format("formats for layer \"{}\"", s_.layers[slot.layers[0]].name),
                  "one at least that was scored, is admitted and below the limit of the score",
                  "measure more formats, raise the limit, or lock the layer");
    c.slots.push_back(std::move(slot));
    c.problem.groups.push_back(std::move(group));
  }

  void add_edges(Choices& c) const {
    if (options_.times.conversions.empty()) return;
    std::map<std::string, size_t> slot_of;
    for (size_t k = 0; k < c.slots.size(); ++k)
      for (size_t i : c.slots[k].layers) slot_of[s_.layers[i].name] = k;
    const auto budget = static_cast<size_t>(std::find(kinds_.begin(), kinds_.end(), Kind::seconds) - kinds_.begin());
    std::map<std::pair<size_t, size_t>, size_t> seen;
    for (const auto& [producer, consumer] : s_.edges) {
      size_t a = slot_of.at(producer), b = slot_of.at(consumer);
      if (a == b) continue;
      const bool turned = a > b;
      if (turned) std::swap(a, b);
      const auto elements = static_cast<double>(find_layer(s_, consumer)->inputs);
      const auto [it, fresh] = seen.emplace(std::pair{a, b}, c.problem.edges.size());
      if (fresh)
        c.problem.edges.push_back(
            {a, b, budget, std::vector<int64_t>(c.slots[a].choices.size() * c.slots[b].choices.size())});
      Edge& edge = c.problem.edges[it->second];
      for (size_t i = 0; i < c.slots[a].choices.size(); ++i)
        for (size_t j = 0; j < c.slots[b].choices.size(); ++j) {
          const BlockFormat& from = (turned ? c.slots[b].choices[j] : c.slots[a].choices[i]).input;
          const BlockFormat& to = (turned ? c.slots[a].choices[i] : c.slots[b].choices[j]).input;
          edge.cost[i * c.slots[b].choices.size() + j] +=
              static_cast<int64_t>(std::ceil(conversion(from, to) * elements * kNanoseconds));
        }
    }
  }

  double conversion(const BlockFormat& from, const BlockFormat& to) const {
    for (const Conversion& c : options_.times.conversions)
      if (c.from == from && c.to == to) return c.seconds_per_element;
    return 0;
  }

  const Sensitivity& s_;
  const AllocationOptions& options_;
  bool joint_time_, joint_bops_;
  std::vector<Kind> kinds_;
  std::vector<std::optional<double>> limits_;
  std::map<std::string, std::vector<std::pair<Operand, BlockFormat>>> admitted_;
};

}  // namespace

const char* name(Kind kind) {
  constexpr std::array kNames = {"bits", "bytes", "seconds", "bops"};
  return kNames[static_cast<size_t>(kind)];
}

double amount(const Choices& choices, Kind kind, int64_t units) {
  const auto value = static_cast<double>(units);
  if (kind == Kind::bits) return choices.weights > 0 ? value / choices.weights : 0;
  if (kind == Kind::bytes) return value / 8;
  return kind == Kind::seconds ? value / kNanoseconds : value;
}

int64_t units(const Choices& choices, Kind kind, double amount) {
  double value = amount;
  if (kind == Kind::bits) value *= choices.weights;
  if (kind == Kind::bytes) value *= 8;
  if (kind == Kind::seconds) value *= kNanoseconds;
  constexpr double kMost = 9e18;
  return value >= kMost ? kNoLimit : static_cast<int64_t>(std::floor(value));
}

Choices build(const Sensitivity& sensitivity, const Budget& budget, const AllocationOptions& options) {
  return Builder(sensitivity, budget, options).build();
}

PrecisionPlan plan_of(const Sensitivity& sensitivity, const Choices& choices, const std::vector<int>& picks,
                      const std::string& why) {
  struct Chosen {
    LayerPrecision precision;
    double loss = 0;
    std::string locked;
  };
  std::vector<Chosen> chosen(sensitivity.layers.size());
  for (size_t k = 0; k < picks.size(); ++k) {
    const Slot& slot = choices.slots[k];
    const auto pick = static_cast<size_t>(picks[k]);
    for (size_t n = 0; n < slot.layers.size(); ++n) {
      Chosen& layer = chosen[slot.layers[n]];
      for (Operand operand : slot.operands)
        format_of(layer.precision, operand) = format_of(slot.choices[pick], operand);
      layer.loss += slot.losses[pick][n];
      layer.locked = slot.locked;
    }
  }
  std::vector<Rule> rules;
  for (size_t i = 0; i < chosen.size(); ++i) {
    Chosen& layer = chosen[i];
    layer.precision.reason = layer.locked.empty() ? fmt::format("{}: {:.3g} nats predicted", why, layer.loss)
                                                  : fmt::format("locked: {}", layer.locked);
    rules.push_back({"=" + sensitivity.layers[i].name, layer.precision});
  }
  LayerPrecision rest;
  rest.reason = "no sensitivity was measured";
  rules.push_back({"*", rest});
  return PrecisionPlan(std::move(rules));
}

}  // namespace hpqf::plan::knapsack
