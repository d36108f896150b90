#include <torch/csrc/utils/pybind.h>
// (torch's header comes first: it brings the casters for tensors.)
#include "bindings.h"
#include "hpqf/base/error.h"
#include "hpqf/engine/auto_plan.h"
#include "hpqf/engine/census.h"
#include "hpqf/engine/describe.h"
#include "hpqf/engine/peaks.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/observe/audit.h"
#include "hpqf/observe/profile/profiler.h"
#include "parameter_watch.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {
namespace {

using engine::Layer;
using engine::LayerParameter;
using engine::LayerRef;

// How many layers this thread is inside of. Python looks for moved parameters on the outermost one only.
thread_local int t_depth = 0;

bool push(Layer* layer) {
  engine::push_layer(layer);
  return t_depth++ == 0;
}
void pop() {
  --t_depth;
  engine::pop_layer();
}

engine::Strict parse_strict(const py::object& strict) {
  if (strict.is_none() || strict.equal(py::bool_(false)) || strict.equal(py::str("off"))) return engine::Strict::off;
  if (strict.equal(py::bool_(true)) || strict.equal(py::str("formats"))) return engine::Strict::formats;
  if (strict.equal(py::str("native"))) return engine::Strict::native;
  throw Error("strict=" + std::string(py::repr(strict)),
              "False, True (the same as \"formats\"), \"formats\", \"native\"", "choose one of these");
}

}  // namespace

void bind_engine(py::module_& m) {
  py::class_<Layer, LayerRef>(m, "Layer").def_readonly("name", &Layer::name);

  py::class_<LayerParameter>(m, "LayerParameter")
      .def(py::init([](std::string layer, std::string name, at::Tensor tensor) {
             return LayerParameter{std::move(layer), std::move(name), std::move(tensor)};
           }),
           "layer"_a, "name"_a, "tensor"_a)
      .def_readonly("layer", &LayerParameter::layer)
      .def_readonly("name", &LayerParameter::name)
      .def_readonly("tensor", &LayerParameter::tensor);

  py::class_<Runtime>(m, "Runtime")
      .def(py::init([](plan::ModelFacts facts, std::vector<LayerParameter> parameters, PrecisionPlan plan,
                       const py::object& strict, std::shared_ptr<observe::EventSink> events, std::string force,
                       const plan::RangeRules& range) {
             RuntimeOptions options{parse_strict(strict), std::move(events), range, std::move(force)};
             return std::make_unique<Runtime>(engine::ModelDescription{std::move(facts), std::move(parameters)},
                                              std::move(plan), std::move(options));
           }),
           "facts"_a, "parameters"_a, "plan"_a, "strict"_a, "events"_a, "force_implementation"_a = "",
           "range"_a = plan::RangeRules{})
      .def_property_readonly("plan", &Runtime::plan)
      .def_property_readonly("facts", &Runtime::facts)
      .def("apply", &Runtime::apply, "plan"_a)
      .def_property_readonly("unsettled", [](const Runtime& r) { return engine::unsettled(r.plan()); })
      .def(
          "settle", [](Runtime& r) { return engine::settle(r); }, py::call_guard<py::gil_scoped_release>(),
          "Between steps: chooses the formats of an \"auto\" plan once its layers were seen; what was chosen, or \"\".")
      .def("follow_ranges", &Runtime::follow_ranges, "At a step boundary: the exponents of range compensation.")
      .def("ranges", [](const Runtime& r) { return plan::to_json(r.ranges()); })
      .def(
          "set_ranges",
          [](Runtime& r, const std::string& json) { r.set_ranges(plan::range_state_from_json(json, "ranges")); },
          "json"_a)
      .def("rescan", &Runtime::rescan, "parameters"_a)
      .def(
          "layer", [](Runtime& r, const std::string& name) { return engine::ref(r.layer(name)); }, "name"_a);

  // Plain functions, not torch ops: functorch and AOT tracing put the thread's dispatch keys back after every op, which
  // would close the scope again at once, and a push and pop as ops costs ten times as much.
  m.def("push_layer", &push, "layer"_a, "Enters the layer on this thread; True when it is the outermost one.");
  m.def("pop_layer", &pop);

  m.def("measure_peaks", &engine::measure_peaks, py::call_guard<py::gil_scoped_release>(),
        "What large matrix products reach on this machine, by format, and the bandwidth of its memory.");
  m.def("computes_positions", &engine::computes_positions, "class_name"_a);
  m.def("requested_plan", &engine::requested_plan, "precision"_a, "sensitive"_a);

  py::class_<engine::OpCensus>(m, "OpCensus",
                               "Times every outermost torch op of the process from construction to finish().")
      .def(py::init<>())
      .def(
          "finish", [](engine::OpCensus& census, observe::Audit& audit) { audit.add_uncounted(census.finish()); },
          "audit"_a)
      .def(
          "finish",
          [](engine::OpCensus& census, observe::Profiler& profiler, double seconds) {
            profiler.add_uncounted(census.finish(), seconds);
          },
          "profiler"_a, "seconds"_a);

  py::class_<ParameterWatch>(m, "ParameterWatch")
      .def(py::init<std::vector<ParameterWatch::Slot>>(), "slots"_a)
      .def("moved", &ParameterWatch::moved);
}

}  // namespace hpqf::python
