// Pure policies: the loss scale's state machine and the layer fallback.
#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include "bindings.h"
#include "hpqf/plan/fallback.h"
#include "hpqf/plan/loss_scale.h"
#include "hpqf/plan/range.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {
namespace {

void bind_loss_scale(py::module_& m) {
  using plan::LossScaleChange;
  using plan::LossScaleOptions;
  using plan::LossScaleState;
  static const LossScaleOptions d;
  py::class_<LossScaleOptions>(m, "LossScaleOptions")
      .def(py::init([](double init, double growth, double backoff, double floor, double cap, int64_t growth_interval,
                       int64_t recovery_interval, int hysteresis, bool enabled) {
             LossScaleOptions o{init,       growth, backoff, floor, cap, growth_interval, recovery_interval,
                                hysteresis, enabled};
             plan::check(o);
             return o;
           }),
           py::kw_only(), "init"_a = d.init, "growth"_a = d.growth, "backoff"_a = d.backoff, "floor"_a = d.floor,
           "cap"_a = d.cap, "growth_interval"_a = d.growth_interval, "recovery_interval"_a = d.recovery_interval,
           "hysteresis"_a = d.hysteresis, "enabled"_a = d.enabled)
      .def_readonly("enabled", &LossScaleOptions::enabled);
  py::class_<LossScaleState>(m, "LossScaleState")
      .def_readonly("scale", &LossScaleState::scale)
      .def_readonly("clean_steps", &LossScaleState::clean_steps)
      .def_readonly("bad_steps", &LossScaleState::bad_steps)
      .def_readonly("best_scale", &LossScaleState::best_scale)
      .def_readonly("skipped_total", &LossScaleState::skipped_total)
      .def("to_json", [](const LossScaleState& state) { return plan::to_json(state); })
      .def_static("from_json", &plan::loss_scale_state_from_json, "text"_a, "where"_a = "loss scale state")
      .def(py::self == py::self);
  py::class_<LossScaleChange>(m, "LossScaleChange")
      .def_readonly("state", &LossScaleChange::state)
      .def_readonly("reason", &LossScaleChange::reason);
  m.def("loss_scale_initial", &plan::initial, "options"_a);
  m.def("loss_scale_update", &plan::update, "state"_a, "finite"_a, "options"_a);
}

void bind_fallback(py::module_& m) {
  using plan::FallbackDecision;
  using plan::FallbackRules;
  using plan::FallbackState;
  static const FallbackRules d;
  py::class_<FallbackRules>(m, "FallbackRules", "When a layer whose format overflows leaves that format.")
      .def(py::init([](bool enabled, int64_t forward_overflows, int64_t gradient_overflows, int64_t clean_streak,
                       std::string to) {
             FallbackRules rules{enabled, forward_overflows, gradient_overflows, clean_streak, std::move(to)};
             plan::check(rules);
             return rules;
           }),
           py::kw_only(), "enabled"_a = d.enabled, "forward_overflows"_a = d.forward_overflows,
           "gradient_overflows"_a = d.gradient_overflows, "clean_streak"_a = d.clean_streak, "to"_a = d.to)
      .def_readonly("enabled", &FallbackRules::enabled)
      .def_readonly("forward_overflows", &FallbackRules::forward_overflows)
      .def_readonly("gradient_overflows", &FallbackRules::gradient_overflows)
      .def_readonly("clean_streak", &FallbackRules::clean_streak)
      .def_readonly("to", &FallbackRules::to);
  py::class_<FallbackState>(m, "FallbackState")
      .def(py::init<>())
      .def_readonly("forward", &FallbackState::forward)
      .def_readonly("gradient", &FallbackState::gradient)
      .def_readonly("clean_steps", &FallbackState::clean_steps)
      .def("to_json", [](const FallbackState& state) { return plan::to_json(state); })
      .def_static("from_json", &plan::fallback_state_from_json, "text"_a, "where"_a = "fallback state")
      .def(py::self == py::self);
  py::class_<FallbackDecision>(m, "FallbackDecision")
      .def_readonly("plan", &FallbackDecision::plan)
      .def_readonly("state", &FallbackDecision::state)
      .def_readonly("reasons", &FallbackDecision::reasons);
  m.def("fallback_react", &plan::react, "plan"_a, "state"_a, "observations"_a, "rules"_a);
}

void bind_range(py::module_& m) {
  using plan::RangeRules;
  static const RangeRules d;
  py::class_<RangeRules>(m, "RangeRules", "Range compensation of fp16 and unscaled fp8 (docs/formats.md).")
      .def(py::init([](bool enabled, int window, int margin) {
             RangeRules rules{enabled, window, margin};
             plan::check(rules);
             return rules;
           }),
           py::kw_only(), "enabled"_a = true, "window"_a = d.window, "margin"_a = d.margin)
      .def_readonly("enabled", &RangeRules::enabled)
      .def_readonly("window", &RangeRules::window)
      .def_readonly("margin", &RangeRules::margin);
}

}  // namespace

void bind_policies(py::module_& m) {
  using plan::CastObservation;
  using plan::Observations;
  py::class_<CastObservation>(m, "CastObservation", "Casts of one layer and role during one step that met trouble.")
      .def_readonly("layer", &CastObservation::layer)
      .def_property_readonly("role", [](const CastObservation& c) { return plan::name(c.role); })
      .def_readonly("format", &CastObservation::format)
      .def_readonly("elements", &CastObservation::elements)
      .def_readonly("nonfinite_in", &CastObservation::nonfinite_in)
      .def_readonly("overflow", &CastObservation::overflow)
      .def(py::pickle(  // ranks exchange them
          [](const CastObservation& c) {
            return py::make_tuple(c.layer, int(c.role), c.format, c.elements, c.nonfinite_in, c.overflow);
          },
          [](const py::tuple& t) {
            return CastObservation{t[0].cast<std::string>(), static_cast<plan::Role>(t[1].cast<int>()),
                                   t[2].cast<std::string>(), t[3].cast<int64_t>(),
                                   t[4].cast<int64_t>(),     t[5].cast<int64_t>()};
          }));
  py::class_<Observations>(m, "Observations")
      .def_readonly("step", &Observations::step)
      .def_readwrite("skipped", &Observations::skipped)
      .def_readwrite("casts", &Observations::casts)
      .def_readwrite("nonfinite_gradients", &Observations::nonfinite_gradients);
  bind_loss_scale(m);
  bind_fallback(m);
  bind_range(m);
}

}  // namespace hpqf::python
