// The tensor side of the loss scale. Stepping a Python optimizer is Python's part (hpqf/loss_scaler.py).
#include <torch/csrc/utils/pybind.h>
// (torch's header comes first: it brings the casters for tensors.)
#include "bindings.h"
#include "hpqf/train/loss_scaler.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {

void bind_train(py::module_& m) {
  using train::GradientHealth;
  using train::LayerParameter;
  py::class_<GradientHealth>(m, "GradientHealth", "What the gradients of a step are worth.")
      .def_readonly("finite", &GradientHealth::finite)
      .def_readonly("layer", &GradientHealth::layer)
      .def_readonly("parameter", &GradientHealth::parameter)
      .def_readonly("nonfinite", &GradientHealth::nonfinite)
      .def_readonly("gradients", &GradientHealth::gradients)
      .def_readonly("layers", &GradientHealth::layers)
      .def_readonly("repeated", &GradientHealth::repeated)
      .def("__bool__", [](const GradientHealth& h) { return h.finite; })
      .def("__str__", &GradientHealth::text);
  py::class_<LossScaler>(m, "LossScaler")
      .def(py::init<plan::LossScaleOptions>(), "options"_a)
      .def("scale", &LossScaler::scale, "loss"_a)
      .def(
          "unscale_and_check",
          [](LossScaler& s, const std::vector<LayerParameter>& parameters) { return s.unscale_and_check(parameters); },
          "parameters"_a, py::call_guard<py::gil_scoped_release>())
      .def(
          "clip_grad_norm",
          [](LossScaler& s, const std::vector<LayerParameter>& parameters, double max_norm) {
            return s.clip_grad_norm(parameters, max_norm);
          },
          "parameters"_a, "max_norm"_a, py::call_guard<py::gil_scoped_release>())
      .def("update", &LossScaler::update)
      .def_property("state", &LossScaler::state, &LossScaler::set_state)
      .def_property_readonly("options", &LossScaler::options);
}

}  // namespace hpqf::python
