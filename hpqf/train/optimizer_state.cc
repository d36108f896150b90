#include "hpqf/train/optimizer_state.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Type.h>
#include <fmt/format.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/archive.h>

#include <cmath>
#include <cstring>
#include <map>
#include <sstream>
#include <typeinfo>
#include <unordered_map>
#include <utility>

#include "hpqf/base/error.h"

namespace hpqf::train {
namespace {

namespace optim = torch::optim;
constexpr const char* kArchive = "archive";

// What each class keeps for a parameter: field(name, reference, needed). A field is needed when the optimizer's next
// step would read it; the others may be absent.
template <class F>
void fields(optim::SGDParamState& s, const optim::SGDOptions&, F&& field) {
  field("momentum_buffer", s.momentum_buffer(), false);  // made when it is missing
}
template <class State, class Options, class F>
void adam_fields(State& s, const Options& o, F&& field) {
  field("step", s.step(), true);
  field("exp_avg", s.exp_avg(), true);
  field("exp_avg_sq", s.exp_avg_sq(), true);
  field("max_exp_avg_sq", s.max_exp_avg_sq(), o.amsgrad());
}
template <class F>
void fields(optim::AdamParamState& s, const optim::AdamOptions& o, F&& field) {
  adam_fields(s, o, field);
}
template <class F>
void fields(optim::AdamWParamState& s, const optim::AdamWOptions& o, F&& field) {
  adam_fields(s, o, field);
}
template <class F>
void fields(optim::RMSpropParamState& s, const optim::RMSpropOptions& o, F&& field) {
  field("step", s.step(), true);
  field("square_avg", s.square_avg(), true);
  field("momentum_buffer", s.momentum_buffer(), o.momentum() > 0);
  field("grad_avg", s.grad_avg(), o.centered());
}
template <class F>
void fields(optim::AdagradParamState& s, const optim::AdagradOptions&, F&& field) {
  field("step", s.step(), true);
  field("sum", s.sum(), true);
}

// Calls use.operator()<State, Options>() for the class of `optimizer`; a subclass may keep more, so it does not count
// as known.
template <class Use>
bool with_known_class(const optim::Optimizer& optimizer, Use&& use) {
  const std::type_info& type = typeid(optimizer);
  if (type == typeid(optim::SGD))
    use.template operator()<optim::SGDParamState, optim::SGDOptions>();
  else if (type == typeid(optim::Adam))
    use.template operator()<optim::AdamParamState, optim::AdamOptions>();
  else if (type == typeid(optim::AdamW))
    use.template operator()<optim::AdamWParamState, optim::AdamWOptions>();
  else if (type == typeid(optim::RMSprop))
    use.template operator()<optim::RMSpropParamState, optim::RMSpropOptions>();
  else if (type == typeid(optim::Adagrad))
    use.template operator()<optim::AdagradParamState, optim::AdagradOptions>();
  else
    return false;
  return true;
}

struct Owned {
  std::string name;
  at::Tensor parameter;
  const optim::OptimizerOptions* options;
};

std::vector<Owned> owned(const optim::Optimizer& optimizer, const std::vector<LayerParameter>& parameters) {
  std::unordered_map<const void*, std::string> names;
  for (const auto& p : parameters) {
    names.emplace(p.tensor.unsafeGetTensorImpl(), p.layer.empty() ? p.name : p.layer + "." + p.name);
  }
  std::vector<Owned> all;
  for (size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    const auto& group = optimizer.param_groups()[g];
    for (size_t i = 0; i < group.params().size(); ++i) {
      const at::Tensor& p = group.params()[i];
      const auto known = names.find(p.unsafeGetTensorImpl());
      all.push_back(
          {known != names.end() ? known->second : fmt::format("group{}.parameter{}", g, i), p, &group.options()});
    }
  }
  return all;
}

std::string archive_bytes(const optim::Optimizer& optimizer) {
  std::ostringstream stream;
  try {
    torch::serialize::OutputArchive archive;
    optimizer.save(archive);
    archive.save_to(stream);
  } catch (const std::exception& e) {  // e.g. L-BFGS in torch 2.13, whose history holds undefined tensors
    throw Error(
        fmt::format("to save the state of an optimizer of class {}", c10::demangle(typeid(optimizer).name())),
        fmt::format("SGD, Adam, AdamW, RMSprop, Adagrad, or what torch::serialize can save (it says: {})", e.what()),
        "use one of these, or train without checkpoints");
  }
  return std::move(stream).str();
}

void load_archive(optim::Optimizer& optimizer, const std::string& bytes) {
  std::istringstream stream(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  optimizer.load(archive);
}

[[noreturn]] void refuse(const std::string& where, const std::string& wrong) {
  throw Error(fmt::format("optimizer state of {}: {}", where, wrong), "the state of this optimizer over this model",
              "resume with the optimizer and the model that wrote the checkpoint");
}

using States = std::map<std::string, std::unique_ptr<optim::OptimizerParamState>>;

// Builds all states before any is put in place.
template <class State, class Options>
States build(const std::vector<Owned>& owners, const std::vector<NamedTensor>& saved, const std::string& where) {
  std::map<std::string, at::Tensor> left;
  for (const NamedTensor& t : saved) left.emplace(t.name, t.tensor);
  States states;
  for (const Owned& owner : owners) {
    auto state = std::make_unique<State>();
    bool any = false;
    std::string missing;
    fields(*state, static_cast<const Options&>(*owner.options), [&](const char* field, auto& value, bool needed) {
      const std::string key = owner.name + "." + field;
      const auto found = left.find(key);
      if (found == left.end()) {
        if (needed && missing.empty()) missing = key;
        return;
      }
      any = true;
      const at::Tensor t = found->second;
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(value)>, int64_t>) {
        if (t.scalar_type() != at::kLong || t.numel() != 1) refuse(where, fmt::format("'{}' is no counter", key));
        value = t.item<int64_t>();
      } else {
        if (t.sizes() != owner.parameter.sizes() || t.scalar_type() != owner.parameter.scalar_type()) {
          refuse(where, fmt::format("'{}' has another shape or type than its parameter", key));
        }
        // Strides as in the run that goes on: element-wise updates then visit memory in the same order.
        value = at::empty_like(owner.parameter.detach()).copy_(t);
      }
      left.erase(found);
    });
    if (any && !missing.empty()) refuse(where, fmt::format("'{}' is missing", missing));
    if (any) states.emplace(owner.name, std::move(state));
  }
  if (!left.empty()) refuse(where, fmt::format("'{}' belongs to no parameter of the optimizer", left.begin()->first));
  return states;
}

}  // namespace

std::string optimizer_name(const optim::Optimizer& optimizer) {
  const std::type_info& type = typeid(optimizer);
  if (type == typeid(optim::SGD)) return "sgd";
  if (type == typeid(optim::Adam)) return "adam";
  if (type == typeid(optim::AdamW)) return "adamw";
  if (type == typeid(optim::RMSprop)) return "rmsprop";
  if (type == typeid(optim::Adagrad)) return "adagrad";
  return "";
}

std::shared_ptr<optim::Optimizer> make_optimizer(const OptimizerSpec& spec,
                                                 const std::vector<LayerParameter>& parameters) {
  const auto possible = [&](const char* what, double value) {
    if (std::isfinite(value) && value >= 0) return;
    throw Error(fmt::format("{} {}", what, value), "a finite number from 0", "choose another one");
  };
  possible("learning rate", spec.lr);
  possible("momentum", spec.momentum);
  possible("weight decay", spec.weight_decay);
  std::vector<at::Tensor> tensors;
  std::unordered_map<const void*, bool> taken;
  for (const auto& p : parameters) {
    if (p.tensor.requires_grad() && taken.emplace(p.tensor.unsafeGetTensorImpl(), true).second)
      tensors.push_back(p.tensor);
  }
  if (tensors.empty()) {
    throw Error("an optimizer for a model without trainable parameters",
                "at least one parameter that requires a gradient",
                "call set_requires_grad(true) on what should be trained");
  }
  if (spec.name == "sgd") {
    return std::make_shared<optim::SGD>(
        tensors, optim::SGDOptions(spec.lr).momentum(spec.momentum).weight_decay(spec.weight_decay));
  }
  if (spec.name == "adamw") {
    return std::make_shared<optim::AdamW>(tensors, optim::AdamWOptions(spec.lr).weight_decay(spec.weight_decay));
  }
  throw Error(fmt::format("optimizer '{}'", spec.name), "sgd, adamw; or any torch optimizer as an object",
              "choose one of them, or set TrainOptions::optimizer");
}

std::vector<NamedTensor> optimizer_tensors(const optim::Optimizer& optimizer,
                                           const std::vector<LayerParameter>& parameters) {
  std::vector<NamedTensor> out;
  const bool known = with_known_class(optimizer, [&]<class State, class Options>() {
    for (const Owned& owner : owned(optimizer, parameters)) {
      const auto found = optimizer.state().find(owner.parameter.unsafeGetTensorImpl());
      if (found == optimizer.state().end()) continue;
      fields(static_cast<State&>(*found->second), static_cast<const Options&>(*owner.options),
             [&](const char* field, auto& value, bool) {
               const std::string name = owner.name + "." + field;
               if constexpr (std::is_same_v<std::remove_reference_t<decltype(value)>, int64_t>) {
                 out.push_back({name, at::scalar_tensor(value, at::kLong)});
               } else if (value.defined()) {
                 out.push_back({name, value});
               }
             });
    }
  });
  if (!known) {
    const std::string bytes = archive_bytes(optimizer);
    at::Tensor t = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
    std::memcpy(t.data_ptr(), bytes.data(), bytes.size());
    out.push_back({kArchive, t});
  }
  return out;
}

void check_optimizer_tensors(const optim::Optimizer& optimizer, const std::vector<LayerParameter>& parameters,
                             const std::vector<NamedTensor>& state, const std::string& where) {
  const bool known = with_known_class(optimizer, [&]<class State, class Options>() {
    build<State, Options>(owned(optimizer, parameters), state, where);
  });
  if (!known && (state.size() != 1 || state[0].name != kArchive))
    refuse(where, "it was written by another optimizer class");
}

void restore_optimizer(optim::Optimizer& optimizer, const std::vector<LayerParameter>& parameters,
                       const std::vector<NamedTensor>& state, const std::string& where) {
  const bool known = with_known_class(optimizer, [&]<class State, class Options>() {
    const std::vector<Owned> owners = owned(optimizer, parameters);
    States states = build<State, Options>(owners, state, where);
    optimizer.state().clear();
    for (const Owned& owner : owners) {
      if (auto found = states.find(owner.name); found != states.end()) {
        optimizer.state()[owner.parameter.unsafeGetTensorImpl()] = std::move(found->second);
      }
    }
  });
  if (known) return;
  check_optimizer_tensors(optimizer, parameters, state, where);
  const std::string before = archive_bytes(optimizer);
  const at::Tensor& bytes = state[0].tensor;
  try {
    load_archive(optimizer, std::string(static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()));
  } catch (const std::exception& e) {
    load_archive(optimizer, before);  // torch may have stopped half-way
    refuse(where, fmt::format("torch cannot load it ({})", e.what()));
  }
}

}  // namespace hpqf::train
