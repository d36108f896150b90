#include "hpqf/plan/plan.h"

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "hpqf/base/error.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {
namespace {

using plan::Change;
using plan::LayerFacts;
using plan::LayerKind;
using plan::ModelFacts;
using plan::PlanDiff;
using plan::Rule;

LayerKind parse_kind(const std::string& name) {
  if (const auto kind = plan::find_layer_kind(name)) return *kind;
  std::string all;
  for (int k = 0; k <= static_cast<int>(LayerKind::other); ++k)
    all += std::string(k ? ", " : "") + plan::name(static_cast<LayerKind>(k));
  throw Error("layer kind \"" + name + "\"", all, "use one of these names");
}

// Block formats are text in Python: 'bf16', 'int8[1x64]'.
template <BlockFormat LayerPrecision::*Field>
void def_role(py::class_<LayerPrecision>& c, const char* name) {
  c.def_property(
      name, [](const LayerPrecision& p) { return to_string(p.*Field); },
      [](LayerPrecision& p, const std::string& text) { p.*Field = formats::parse_block_format(text); });
}

void bind_facts(py::module_& m) {
  py::class_<LayerFacts>(m, "LayerFacts", "A module of a model: qualified name, class name, kind, own parameters.")
      .def(py::init([](std::string name, std::string type, const std::string& kind, int64_t parameters) {
             return LayerFacts{std::move(name), std::move(type), parse_kind(kind), parameters};
           }),
           "name"_a, "type"_a, "kind"_a, "parameters"_a)
      .def_readonly("name", &LayerFacts::name)
      .def_readonly("type", &LayerFacts::type)
      .def_property_readonly("kind", [](const LayerFacts& f) { return plan::name(f.kind); })
      .def_readonly("parameters", &LayerFacts::parameters);
  py::class_<ModelFacts>(m, "ModelFacts", "The modules of a model in definition order.")
      .def(py::init([](std::string model, std::vector<LayerFacts> layers) {
             return ModelFacts{std::move(model), std::move(layers)};
           }),
           "model"_a, "layers"_a)
      // Where facts are asked for, a torch.nn.Module will do.
      .def(py::init([](const py::object& module) {
             return py::module_::import("hpqf.describe").attr("model_facts")(module).cast<ModelFacts>();
           }),
           "module"_a)
      .def_readonly("model", &ModelFacts::model)
      .def_readonly("layers", &ModelFacts::layers);
  py::implicitly_convertible<py::object, ModelFacts>();
}

void bind_precision(py::module_& m) {
  py::class_<LayerPrecision> c(m, "LayerPrecision", "The block format of each role of one layer.");
  c.def(py::init([](const std::string& format, std::string reason, const py::kwargs& roles) {
          py::object p = py::cast(plan::uniform_precision(format, std::move(reason)));
          for (const auto& [role, text] : roles) {
            if (!py::hasattr(p, role))
              throw Error("role \"" + std::string(py::str(role)) + "\"",
                          "weight, input, dgrad, wgrad, saved, master, state, wire, accumulate",
                          "use one of these names");
            py::setattr(p, role, text);
          }
          return p.cast<LayerPrecision>();
        }),
        "format"_a, "reason"_a = "",
        "weight, input, dgrad and wgrad in `format`; single roles may be given by name: LayerPrecision('bf16', "
        "wgrad='fp32').");
  def_role<&LayerPrecision::weight>(c, "weight");
  def_role<&LayerPrecision::input>(c, "input");
  def_role<&LayerPrecision::dgrad>(c, "dgrad");
  def_role<&LayerPrecision::wgrad>(c, "wgrad");
  def_role<&LayerPrecision::saved>(c, "saved");
  def_role<&LayerPrecision::master>(c, "master");
  def_role<&LayerPrecision::state>(c, "state");
  def_role<&LayerPrecision::wire>(c, "wire");
  c.def_property(
       "accumulate", [](const LayerPrecision& p) { return formats::name(p.accumulate); },
       [](LayerPrecision& p, const std::string& text) { p.accumulate = formats::parse_format(text); })
      .def_readwrite("reason", &LayerPrecision::reason)
      .def("same_formats", &LayerPrecision::same_formats, "other"_a)
      .def("all_fp32", &LayerPrecision::all_fp32)
      .def(py::self == py::self)
      .def("__repr__", [](const LayerPrecision& p) {
        return "<hpqf.LayerPrecision weight=" + to_string(p.weight) + " input=" + to_string(p.input) +
               " dgrad=" + to_string(p.dgrad) + " wgrad=" + to_string(p.wgrad) +
               (p.reason.empty() ? "" : " (" + p.reason + ")") + ">";
      });
}

}  // namespace

void bind_plan(py::module_& m) {
  bind_facts(m);
  bind_precision(m);

  py::class_<Change>(m, "Change", "One line of a plan diff.")
      .def_readonly("layer", &Change::layer)
      .def_readonly("role", &Change::role)
      .def_readonly("before", &Change::from)
      .def_readonly("after", &Change::to)
      .def_readonly("reason", &Change::reason)
      .def("__str__", [](const Change& c) { return plan::to_string(PlanDiff{c}); });

  py::class_<Rule>(m, "Rule", "The precision of the layers that match a pattern.")
      .def(py::init([](std::string layers, LayerPrecision precision) {
             return Rule{std::move(layers), std::move(precision)};
           }),
           "layers"_a, "precision"_a)
      .def_readonly("layers", &Rule::layers)
      .def_readonly("precision", &Rule::precision)
      .def(py::self == py::self);

  py::class_<PrecisionPlan>(
      m, "PrecisionPlan",
      "For each layer and role a block format, with the reason. A value: the first matching rule wins.")
      .def(py::init<>())
      .def(py::init<std::vector<Rule>>(), "rules"_a)
      .def_static("uniform", &PrecisionPlan::uniform, "format"_a, "reason"_a = "")
      .def_static("with_sensitive", &PrecisionPlan::with_sensitive, "format"_a, "sensitive"_a,
                  "reason"_a = "asked by the user")
      .def_static("from_json", &PrecisionPlan::from_json, "text"_a, "where"_a = "plan")
      .def_static("load", &PrecisionPlan::load, "path"_a)
      .def(
          "at",
          [](const PrecisionPlan& p, const std::string& layer, const std::string& kind) {
            return p.at(layer, parse_kind(kind));
          },
          "layer"_a, "kind"_a = "other")
      .def_property_readonly("rules", &PrecisionPlan::rules)
      .def_property_readonly("epoch", &PrecisionPlan::epoch)
      .def(
          "with_rule", [](const PrecisionPlan& p, Rule rule) { return p.with_rule(std::move(rule)); }, "rule"_a)
      .def(
          "with_rule",
          [](const PrecisionPlan& p, std::string layers, const std::string& format, std::string reason) {
            return p.with_rule({std::move(layers), plan::uniform_precision(format, std::move(reason))});
          },
          "layers"_a, "format"_a, "reason"_a = "",
          "A new plan in which these layers run in `format`, before all other rules.")
      .def(
          "with_rule",
          [](const PrecisionPlan& p, std::string layers, const LayerPrecision& precision) {
            return p.with_rule({std::move(layers), precision});
          },
          "layers"_a, "precision"_a)
      .def("diff", &PrecisionPlan::diff, "other"_a, "model"_a, "What `other` changes, as a list of Change.")
      .def("check", &PrecisionPlan::check, "model"_a, "hpqf.Error when a pattern matches no layer of the model.")
      .def(
          "to_json",
          [](const PrecisionPlan& p, const std::optional<ModelFacts>& model) {
            return p.to_json(model ? &*model : nullptr);
          },
          "model"_a = py::none(), "JSON; with a table of the resolved layers when a model is given.")
      .def(py::self == py::self)
      .def("__str__", [](const PrecisionPlan& p) { return p.to_json(); })
      .def("__repr__",
           [](const PrecisionPlan& p) {
             std::string text = "<hpqf.PrecisionPlan epoch " + std::to_string(p.epoch()) + ":";
             for (const Rule& rule : p.rules()) text += " " + rule.layers + "=" + to_string(rule.precision.weight);
             return text + ">";
           })
      .def(py::pickle([](const PrecisionPlan& p) { return p.to_json(); },
                      [](const std::string& json) { return PrecisionPlan::from_json(json); }));
}

}  // namespace hpqf::python
