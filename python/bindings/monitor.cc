// The gradient monitor and the three-tier monitor.
#include <torch/csrc/utils/pybind.h>
// (torch's header comes first: it brings the casters for tensors.)
#include "bindings.h"
#include "hpqf/observe/monitor/monitor.h"
#include "hpqf/train/gradient_monitor.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {
namespace {

using engine::LayerParameter;
using observe::Alert;
using observe::AlertRule;
using observe::DetectorOptions;
using observe::Finding;
using observe::GradientObservation;
using observe::Monitor;
using observe::MonitorRow;
using observe::MonitorVerdict;

py::dict as_dict(const MonitorRow& row) {
  py::dict metrics, basis;
  for (const observe::Metric& metric : row.metrics) {
    metrics[py::str(metric.name)] = metric.value;
    if (!metric.basis.empty()) basis[py::str(metric.name)] = metric.basis;
  }
  return py::dict("step"_a = row.step, "epoch"_a = row.epoch, "time"_a = row.time, "metrics"_a = metrics,
                  "basis"_a = basis, "unknown"_a = row.unknown, "notes"_a = row.notes, "alerts"_a = row.alerts);
}

}  // namespace

void bind_monitor(py::module_& m) {
  py::class_<GradientObservation>(m, "GradientObservation", "Statistics of one tensor of a layer in one step.")
      .def_readonly("step", &GradientObservation::step)
      .def_readonly("layer", &GradientObservation::layer)
      .def_property_readonly("subject", [](const GradientObservation& o) { return observe::name(o.subject); })
      .def_readonly("format", &GradientObservation::format)
      .def_readonly("elements", &GradientObservation::elements)
      .def_readonly("nan", &GradientObservation::nan)
      .def_readonly("infinite", &GradientObservation::infinite)
      .def_readonly("norm", &GradientObservation::norm)
      .def_readonly("max_abs", &GradientObservation::max_abs)
      .def_readonly("mean", &GradientObservation::mean)
      .def_readonly("deviation", &GradientObservation::deviation)
      .def_readonly("kurtosis", &GradientObservation::kurtosis)
      .def_readonly("underflow", &GradientObservation::underflow)
      .def_readonly("overflow", &GradientObservation::overflow)
      .def_readonly("sqnr_db", &GradientObservation::sqnr_db)
      .def_readonly("update_ratio", &GradientObservation::update_ratio)
      .def_readonly("time_norms", &GradientObservation::time_norms)
      .def("to_json", [](const GradientObservation& o) { return observe::to_json_line(o); })
      .def("__repr__",
           [](const GradientObservation& o) { return "<hpqf.GradientObservation " + to_json_line(o) + ">"; });
  py::class_<Finding>(m, "GradientFinding", "Gradients that explode, vanish or are not finite.")
      .def_readonly("step", &Finding::step)
      .def_readonly("layer", &Finding::layer)
      .def_property_readonly("subject", [](const Finding& f) { return observe::name(f.subject); })
      .def_property_readonly("trouble", [](const Finding& f) { return observe::name(f.trouble); })
      .def_readonly("value", &Finding::value)
      .def_readonly("text", &Finding::text)
      .def("__str__", [](const Finding& f) { return std::string(observe::name(f.trouble)) + ": " + f.text; });

  py::class_<DetectorOptions>(m, "DetectorOptions",
                              "When gradients explode or vanish (observe/monitor/gradient_detector.h).")
      .def(py::init<>())
      .def_readwrite("window", &DetectorOptions::window)
      .def_readwrite("least_history", &DetectorOptions::least_history)
      .def_readwrite("explode", &DetectorOptions::explode)
      .def_readwrite("explode_over", &DetectorOptions::explode_over)
      .def_readwrite("vanish", &DetectorOptions::vanish)
      .def_readwrite("vanish_over", &DetectorOptions::vanish_over)
      .def_readwrite("cool_down", &DetectorOptions::cool_down)
      .def_readwrite("time_explode", &DetectorOptions::time_explode)
      .def_readwrite("time_vanish", &DetectorOptions::time_vanish);

  py::class_<GradientMonitor>(m, "GradientMonitor")
      .def(py::init([](int64_t every, bool quantisation, std::string path, DetectorOptions detector) {
             train::GradientMonitorOptions options;
             options.every = every;
             options.quantisation = quantisation;
             options.path = std::move(path);
             options.detector = detector;
             return std::make_unique<GradientMonitor>(std::move(options));
           }),
           "every"_a, "quantisation"_a, "path"_a, "detector"_a)
      .def("due", &GradientMonitor::due, "step"_a)
      .def("resume_after", &GradientMonitor::resume_after, "step"_a)
      .def(
          "gradients",
          [](GradientMonitor& monitor, int64_t step, const std::vector<LayerParameter>& parameters,
             const PrecisionPlan* plan,
             const plan::ModelFacts& facts) { monitor.gradients(step, parameters, plan, facts); },
          "step"_a, "parameters"_a, "plan"_a.none(true), "facts"_a, py::call_guard<py::gil_scoped_release>())
      .def(
          "output_gradient",
          [](GradientMonitor& monitor, int64_t step, const std::string& layer, const at::Tensor& gradient,
             const std::string& format, bool input, std::optional<int64_t> time_axis) {
            monitor.output_gradient(step, layer, gradient, formats::parse_block_format(format), input, time_axis);
          },
          "step"_a, "layer"_a, "gradient"_a, "format"_a, "input"_a = false, "time_axis"_a = py::none())
      .def(
          "updated",
          [](GradientMonitor& monitor, const std::vector<LayerParameter>& parameters) { monitor.updated(parameters); },
          "parameters"_a, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("latest", [](const GradientMonitor& monitor) { return monitor.latest(); })
      .def_property_readonly("findings", [](const GradientMonitor& monitor) { return monitor.findings(); })
      .def("take_notes", &GradientMonitor::take_notes)
      .def("state_to_json", [](const GradientMonitor& monitor) { return monitor.state().to_json(); })
      .def("load_state", [](GradientMonitor& monitor, const std::string& json) {
        monitor.set_state(observe::DetectorState::from_json(json));
      });

  py::class_<Alert>(m, "Alert", "A rule of the monitor was met.")
      .def_readonly("rule", &Alert::rule)
      .def_readonly("metric", &Alert::metric)
      .def_readonly("value", &Alert::value)
      .def_property_readonly("action", [](const Alert& alert) { return observe::name(alert.action); })
      .def_readonly("text", &Alert::text)
      .def("__str__", [](const Alert& alert) { return alert.text; });
  m.def("default_alert_rules", [] { return observe::to_json(observe::default_alert_rules()); });

  py::class_<Monitor>(m, "Monitor")
      .def(py::init([](int64_t every, std::string path, const std::string& rules, observe::RateTable rates,
                       std::string reference, std::optional<double> price_per_hour, std::string price_source,
                       std::optional<double> fp32_ratio, std::string ratio_source, int64_t samples_per_epoch,
                       std::optional<double> watts, std::string watts_source) {
             observe::MonitorOptions options;
             options.every = every;
             options.path = std::move(path);
             if (!rules.empty()) options.rules = observe::alert_rules_from_json(rules, "rules");
             options.rates = std::move(rates);
             options.reference = std::move(reference);
             options.cost.price_per_hour = price_per_hour;
             options.cost.price_source = std::move(price_source);
             options.cost.fp32_ratio = fp32_ratio;
             options.cost.ratio_source = std::move(ratio_source);
             options.cost.samples_per_epoch = samples_per_epoch;
             options.cost.watts = watts;
             options.cost.watts_source = std::move(watts_source);
             return std::make_unique<Monitor>(std::move(options));
           }),
           "every"_a, "path"_a, "rules"_a, "rates"_a, "reference"_a, "price_per_hour"_a, "price_source"_a,
           "fp32_ratio"_a, "ratio_source"_a, "samples_per_epoch"_a, "watts"_a, "watts_source"_a)
      .def("due", &Monitor::due, "step"_a)
      .def("resume_after", &Monitor::resume_after, "step"_a)
      .def(
          "observe",
          [](Monitor& monitor, int64_t step, int64_t epoch, int64_t samples, double loss, double seconds, bool applied,
             double loss_scale, std::optional<double> grad_norm, std::optional<double> accuracy,
             const observe::AuditReport* audit, const std::vector<GradientObservation>& gradients,
             const std::vector<Finding>& findings) -> py::tuple {
            const MonitorVerdict v =
                monitor.observe({step, epoch, samples, loss, seconds, applied, loss_scale, grad_norm, accuracy}, audit,
                                gradients, findings);
            py::object row = v.row ? py::object(as_dict(*v.row)) : py::none();
            return py::make_tuple(row, v.alerts, v.stop);
          },
          "step"_a, "epoch"_a, "samples"_a, "loss"_a, "seconds"_a, "applied"_a, "loss_scale"_a, "grad_norm"_a,
          "accuracy"_a, "audit"_a.none(true), "gradients"_a, "findings"_a);
}

}  // namespace hpqf::python
