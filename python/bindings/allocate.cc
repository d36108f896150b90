// Allocation from a sensitivity record, its candidates and front, and the replay of a history.
#include "hpqf/plan/allocate/allocate.h"

#include <pybind11/stl.h>

#include "bindings.h"
#include "hpqf/base/error.h"
#include "hpqf/plan/allocate/threshold.h"
#include "hpqf/plan/policy/history.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {
namespace {

using plan::Allocation;
using plan::AllocationPoint;
using plan::Amount;
using plan::Candidate;

std::vector<BlockFormat> menu(const std::vector<std::string>& names) {
  std::vector<BlockFormat> formats;
  for (const std::string& name : names) formats.push_back(formats::parse_block_format(name));
  return formats;
}

py::dict amounts(const std::vector<Amount>& all) {
  py::dict dict;
  for (const Amount& a : all) dict[py::str(a.kind)] = a.value;
  return dict;
}

Allocation allocate(const std::string& sensitivity, const plan::Budget& budget, double standard_errors,
                    const std::vector<std::string>& weights, const std::vector<std::string>& inputs,
                    const std::map<std::string, LayerPrecision>& locks, std::optional<double> forbid_above,
                    bool training, const std::optional<std::string>& times, const std::string& minimise,
                    int front_points) {
  plan::AllocationOptions options;
  options.standard_errors = standard_errors;
  options.weight = menu(weights);
  options.input = menu(inputs);
  for (const auto& [layers, precision] : locks)
    options.locks.push_back({layers, precision, precision.reason.empty() ? "asked by the user" : precision.reason});
  options.forbid_above = forbid_above;
  if (training) options.training = plan::AdmissionThresholds{};
  if (times) options.times = plan::times_from_json(*times);
  options.minimise = minimise;
  options.front_points = front_points;
  const plan::Sensitivity read = plan::sensitivity_from_json(sensitivity);
  py::gil_scoped_release release;
  return plan::allocate(read, budget, options);
}

plan::Budget parse_budget(const std::map<std::string, double>& budget) {
  plan::Budget parsed;
  for (const auto& [name, value] : budget) {
    if (name == "bits")
      parsed.bits = value;
    else if (name == "bytes")
      parsed.bytes = value;
    else if (name == "seconds" || name == "time")
      parsed.seconds = value;
    else if (name == "bops")
      parsed.bops = value;
    else if (name == "loss")
      parsed.loss = value;
    else
      throw Error("a budget of \"" + name + "\"", "bits, bytes, seconds, bops, loss", "use one of these names");
  }
  return parsed;
}

}  // namespace

void bind_allocate(py::module_& m) {
  py::class_<plan::Budget>(m, "Budget")
      .def(py::init(&parse_budget), "budget"_a)
      .def(py::init(&plan::parse_budget), "text"_a)
      .def("__str__", [](const plan::Budget& b) { return plan::to_string(b); });
  py::class_<Candidate>(m, "Candidate", "A plan within the budget, to be measured before one is taken.")
      .def_readonly("name", &Candidate::name)
      .def_readonly("plan", &Candidate::plan)
      .def_readonly("loss", &Candidate::loss, "predicted change of the loss, nats")
      .def_property_readonly("amounts", [](const Candidate& c) { return amounts(c.amounts); })
      .def("__repr__", [](const Candidate& c) { return "<Candidate " + c.name + ">"; });
  py::class_<AllocationPoint>(m, "AllocationPoint", "A point of the Pareto front.")
      .def_readonly("cost", &AllocationPoint::cost)
      .def_readonly("loss", &AllocationPoint::loss)
      .def_readonly("plan", &AllocationPoint::plan)
      .def_readonly("changes", &AllocationPoint::changes, "from the point before");
  py::class_<Allocation>(m, "Allocation",
                         "The plan of least predicted loss within a budget, and what it was chosen from.")
      .def_readonly("plan", &Allocation::plan)
      .def_readonly("loss", &Allocation::loss, "predicted change of the loss, nats, standard errors included")
      .def_readonly("bound", &Allocation::bound, "nothing within the budget has less")
      .def_readonly("exact", &Allocation::exact)
      .def_readonly("method", &Allocation::method)
      .def_property_readonly("amounts", [](const Allocation& a) { return amounts(a.amounts); })
      .def_readonly("candidates", &Allocation::candidates)
      .def_readonly("front", &Allocation::front)
      .def_readonly("front_kind", &Allocation::front_kind)
      .def(
          "choose_final",
          [](const Allocation& a, const std::vector<double>& measured) {
            plan::FinalChoice choice = plan::choose_final(a.candidates, measured);
            return py::make_tuple(a.candidates[choice.index], std::move(choice.reason));
          },
          "measured"_a,
          "The candidate that measured least, and why. One number for each candidate, e.g. its KL to fp32.")
      .def("to_json", [](const Allocation& a) { return plan::to_json(a); });
  m.def("allocate", &allocate, "sensitivity"_a, "budget"_a, py::kw_only(), "standard_errors"_a, "weights"_a, "inputs"_a,
        "locks"_a, "forbid_above"_a, "training"_a, "times"_a, "minimise"_a, "front_points"_a);

  py::class_<plan::ThresholdOptions>(m, "ThresholdOptions")
      .def(py::init([](std::string measure, bool relative, std::string low, std::string high) {
             return plan::ThresholdOptions{std::move(measure), relative, std::move(low), std::move(high)};
           }),
           py::kw_only(), "measure"_a, "relative"_a, "low"_a, "high"_a);
  m.def(
      "allocate_precision",
      [](const std::string& sensitivity, double threshold, const plan::ThresholdOptions& options) {
        return plan::allocate_precision(plan::sensitivity_from_json(sensitivity), threshold, options);
      },
      "sensitivity"_a, "threshold"_a, "options"_a);
  m.def("layers_of_sensitivity", [](const std::string& sensitivity) {
    std::vector<std::string> names;
    for (const plan::LayerSensitivity& layer : plan::sensitivity_from_json(sensitivity).layers)
      names.push_back(layer.name);
    return names;
  });
  m.def("replay", [](const std::string& history) {
    const plan::Replay r = plan::replay(history);
    return py::dict("recomputed"_a = r.recomputed, "only_applied"_a = r.only_applied, "wrong"_a = r.wrong,
                    "plan"_a = r.plan, "text"_a = plan::explain(r));
  });
}

}  // namespace hpqf::python
