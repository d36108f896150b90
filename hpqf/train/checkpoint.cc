#include "hpqf/train/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"
#include "hpqf/train/optimizer_state.h"
#include "hpqf/train/tensor_file.h"

namespace hpqf::train {
namespace {

using plan::Json;
using plan::JsonObject;

constexpr std::string_view kSchema = "hpqf.checkpoint";
constexpr int kVersion = 1;
constexpr const char* kGenerator = "generator.cpu";
constexpr const char* kEpochGenerator = "generator.cpu_at_epoch";

// Parameters and buffers by their qualified names.
std::vector<NamedTensor> model_tensors(const torch::nn::Module& model) {
  std::vector<NamedTensor> all;
  for (const auto& item : model.named_parameters()) all.push_back({item.key(), item.value()});
  for (const auto& item : model.named_buffers()) {
    if (item.value().defined()) all.push_back({item.key(), item.value()});
  }
  return all;
}

std::vector<LayerParameter> parameters_of(const torch::nn::Module& model) {
  std::vector<LayerParameter> all;
  for (const auto& item : model.named_parameters()) all.push_back({"", item.key(), item.value()});
  return all;
}

std::string state_json(const Snapshot& s, const std::string& optimizer) {
  Json j;
  j["step"] = s.counters.step;
  j["applied"] = s.counters.applied;
  j["position"] = {{"epoch", s.position.epoch},
                   {"batch", s.position.batch},
                   {"samples", s.position.samples},
                   {"batch_size", s.position.batch_size},
                   {"seed", std::to_string(s.position.seed)},  // JSON readers elsewhere lose integers over 2^53
                   {"shuffle", s.position.shuffle},
                   {"drop_last", s.position.drop_last}};
  j["schedule"] = {{"kind", name(s.schedule.kind)},
                   {"warmup_steps", s.schedule.warmup_steps},
                   {"total_steps", s.schedule.total_steps},
                   {"final_factor", s.schedule.final_factor}};
  j["optimizer"] = optimizer;
  j["base_lr"] = s.base_lr;
  return j.dump();
}

uint64_t parse_seed(const JsonObject& position) {
  const std::string text = position.text("seed");
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error(fmt::format("{}: seed \"{}\"", position.place(), text), "an integer from 0 to 2^64 - 1", "correct it");
  }
  return seed;
}

const std::string& metadata(const TensorFile& file, const std::string& key, const std::string& path) {
  const auto found = file.metadata.find(key);
  if (found != file.metadata.end()) return found->second;
  throw Error(fmt::format("to resume from {}", path), fmt::format("a checkpoint with the key '{}'", key),
              "use an older checkpoint, or the original of this file");
}

struct Loaded {
  Snapshot snapshot;
  std::string optimizer;
  TensorFile file;
};

Loaded load(const std::string& path) {
  // GCC 12 destroys members that were never made when an aggregate's initialiser throws: first the object, then the
  // file.
  Loaded out;
  out.file = read_tensor_file(path, kSchema, kVersion);
  Snapshot& s = out.snapshot;
  const auto place = [&](const char* what) { return path + ": " + what; };
  const Json state = plan::parse_json(metadata(out.file, "state", path), place("state"));
  const JsonObject object(state, place("state"));
  s.counters = {.step = object.integer("step", 0), .applied = object.integer("applied", 0)};
  const JsonObject position(object.object("position"), place("position"));
  s.position = {.epoch = position.integer("epoch", 0),
                .batch = position.integer("batch", 0),
                .samples = position.integer("samples", 0),
                .batch_size = position.integer("batch_size", 0),
                .seed = parse_seed(position),
                .shuffle = position.boolean("shuffle"),
                .drop_last = position.boolean("drop_last")};
  const JsonObject schedule(object.object("schedule"), place("schedule"));
  s.schedule = {.kind = parse_schedule(schedule.text("kind")),
                .warmup_steps = schedule.integer("warmup_steps", 0),
                .total_steps = schedule.integer("total_steps", 0),
                .final_factor = schedule.number("final_factor", 0)};
  out.optimizer = object.text("optimizer");
  for (const Json& lr : object.array("base_lr")) {
    if (!lr.is_number()) throw Error(place("base_lr"), "a list of numbers", "use the original of this file");
    s.base_lr.push_back(lr.get<double>());
  }
  s.loss_scale = plan::loss_scale_state_from_json(metadata(out.file, "loss_scale", path), place("loss_scale"));
  s.fallback = plan::fallback_state_from_json(metadata(out.file, "fallback", path), place("fallback"));
  s.plan = PrecisionPlan::from_json(metadata(out.file, "plan", path), place("plan"));
  s.requested = PrecisionPlan::from_json(metadata(out.file, "requested_plan", path), place("requested_plan"));
  s.ranges = plan::range_state_from_json(metadata(out.file, "ranges", path), place("ranges"));
  s.audit = observe::AuditReport::from_json(metadata(out.file, "audit", path), place("audit"));
  const auto tensor = [&](const char* name) {
    const at::Tensor* t = out.file.find(name);
    return t ? *t : at::Tensor();
  };
  s.generator = tensor(kGenerator);
  s.epoch_generator = tensor(kEpochGenerator);
  if (!s.generator.defined()) metadata(out.file, kGenerator, path);  // names what is missing
  return out;
}

// The tensors of one group, without their prefix.
std::vector<NamedTensor> group(const TensorFile& file, std::string_view prefix) {
  std::vector<NamedTensor> all;
  for (const NamedTensor& t : file.tensors) {
    if (t.name.starts_with(prefix)) all.push_back({t.name.substr(prefix.size()), t.tensor});
  }
  return all;
}

void check_model(const std::vector<NamedTensor>& mine, const std::vector<NamedTensor>& saved, const std::string& path) {
  const auto refuse = [&](const std::string& wrong) {
    throw Error(fmt::format("to load {} into another model: {}", path, wrong), "the model that wrote the checkpoint",
                "build the model with the options of that run");
  };
  std::map<std::string_view, const at::Tensor*> left;
  for (const NamedTensor& t : saved) left[t.name] = &t.tensor;
  for (const NamedTensor& t : mine) {
    const auto found = left.find(t.name);
    if (found == left.end()) refuse(fmt::format("the file has no '{}'", t.name));
    const at::Tensor& other = *found->second;
    if (other.sizes() != t.tensor.sizes() || other.scalar_type() != t.tensor.scalar_type()) {
      refuse(fmt::format("'{}' is {} [{}] in the file and {} [{}] in the model", t.name,
                         c10::toString(other.scalar_type()), fmt::join(other.sizes(), ", "),
                         c10::toString(t.tensor.scalar_type()), fmt::join(t.tensor.sizes(), ", ")));
    }
    left.erase(found);
  }
  if (!left.empty()) refuse(fmt::format("the model has no '{}'", left.begin()->first));
}

void copy_model(const std::vector<NamedTensor>& mine, const std::vector<NamedTensor>& saved) {
  std::map<std::string_view, const at::Tensor*> source;
  for (const NamedTensor& t : saved) source[t.name] = &t.tensor;
  at::NoGradGuard no_grad;
  for (const NamedTensor& t : mine) t.tensor.copy_(*source.at(t.name));
}

}  // namespace

void save_checkpoint(const std::string& path, const Snapshot& snapshot, const torch::nn::Module& model,
                     const torch::optim::Optimizer& optimizer) {
  TensorFile file;
  file.metadata = {{"schema", std::string(kSchema)},
                   {"version", std::to_string(kVersion)},
                   {"state", state_json(snapshot, optimizer_name(optimizer))},
                   {"loss_scale", plan::to_json(snapshot.loss_scale)},
                   {"fallback", plan::to_json(snapshot.fallback)},
                   {"plan", snapshot.plan.to_json()},
                   {"requested_plan", snapshot.requested.to_json()},
                   {"ranges", plan::to_json(snapshot.ranges)},
                   {"audit", snapshot.audit.to_json(-1)}};
  for (NamedTensor& t : model_tensors(model)) file.tensors.push_back({"model." + t.name, std::move(t.tensor)});
  for (NamedTensor& t : optimizer_tensors(optimizer, parameters_of(model))) {
    file.tensors.push_back({"optimizer." + t.name, std::move(t.tensor)});
  }
  file.tensors.push_back({kGenerator, snapshot.generator});
  if (snapshot.epoch_generator.defined()) file.tensors.push_back({kEpochGenerator, snapshot.epoch_generator});
  write_tensor_file(path, file);
}

Snapshot load_checkpoint(const std::string& path, torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
  Loaded loaded = load(path);
  const std::vector<NamedTensor> mine = model_tensors(model), saved = group(loaded.file, "model.");
  const std::vector<NamedTensor> state = group(loaded.file, "optimizer.");
  const std::vector<LayerParameter> parameters = parameters_of(model);
  check_model(mine, saved, path);
  if (loaded.optimizer != optimizer_name(optimizer)) {
    const auto text = [](const std::string& name) {
      return name.empty() ? std::string("of another class") : "'" + name + "'";
    };
    throw Error(fmt::format("to load {} into an optimizer {}", path, text(optimizer_name(optimizer))),
                fmt::format("the optimizer that wrote it: {}", text(loaded.optimizer)),
                "resume with the same optimizer");
  }
  restore_optimizer(optimizer, parameters, state, path);  // checks all before it changes anything
  copy_model(mine, saved);
  return std::move(loaded.snapshot);
}

void load_model(const std::string& path, torch::nn::Module& model) {
  const Loaded loaded = load(path);
  const std::vector<NamedTensor> mine = model_tensors(model), saved = group(loaded.file, "model.");
  check_model(mine, saved, path);
  copy_model(mine, saved);
}

Snapshot read_snapshot(const std::string& path) { return load(path).snapshot; }

}  // namespace hpqf::train
