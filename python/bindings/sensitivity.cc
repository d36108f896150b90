// The measurement of sensitivity, and its result as a value.
#include <torch/csrc/utils/pybind.h>
// (torch's header comes first: it brings the casters for tensors.)
#include <pybind11/operators.h>

#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include "bindings.h"

#include "hpqf/base/error.h"
#include "hpqf/engine/sensitivity/model_hessian.h"
#include "hpqf/engine/sensitivity/profile.h"
#include "hpqf/observe/sensitivity_report.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {
namespace {

using engine::sensitivity::LayerStatistics;
using engine::sensitivity::Profile;
using engine::sensitivity::ProfileOptions;
using engine::sensitivity::ProfileResult;
using plan::FormatScore;
using plan::LayerSensitivity;
using plan::Sensitivity;

std::vector<BlockFormat> parse_all(const std::vector<std::string>& texts) {
  std::vector<BlockFormat> all;
  for (const std::string& text : texts) all.push_back(formats::parse_block_format(text));
  return all;
}

void bind_values(py::module_& m) {
  py::class_<FormatScore>(m, "FormatScore", "One operand of one layer in one format; scores in nats.")
      .def_property_readonly("role", [](const FormatScore& s) { return plan::name(s.operand); })
      .def_property_readonly("format", [](const FormatScore& s) { return formats::to_string(s.format); })
      .def_readonly("score", &FormatScore::score)
      .def_readonly("standard_error", &FormatScore::standard_error)
      .def_readonly("first_order", &FormatScore::first_order)
      .def_readonly("first_order_stderr", &FormatScore::first_order_stderr)
      .def_readonly("terms", &FormatScore::terms)
      .def_readonly("omega", &FormatScore::omega)
      .def_readonly("error", &FormatScore::error)
      .def_readonly("bias", &FormatScore::bias)
      .def_readonly("loss_change", &FormatScore::loss_change)
      .def("__repr__", [](const FormatScore& s) {
        return "<hpqf.FormatScore " + std::string(plan::name(s.operand)) + " " + formats::to_string(s.format) + ": " +
               std::to_string(s.score) + " +- " + std::to_string(s.standard_error) + " nats>";
      });
  py::class_<plan::Hessian>(m, "LayerHessian")
      .def_readonly("top_eigenvalue", &plan::Hessian::top_eigenvalue)
      .def_readonly("trace", &plan::Hessian::trace)
      .def_readonly("trace_stderr", &plan::Hessian::trace_stderr)
      .def_readonly("probes", &plan::Hessian::probes);
  py::class_<LayerSensitivity>(m, "LayerSensitivity")
      .def_readonly("name", &LayerSensitivity::name)
      .def_property_readonly("kind", [](const LayerSensitivity& l) { return plan::name(l.kind); })
      .def_readonly("weights", &LayerSensitivity::weights)
      .def_readonly("inputs", &LayerSensitivity::inputs)
      .def_readonly("macs", &LayerSensitivity::macs)
      .def_readonly("hessian", &LayerSensitivity::hessian)
      .def_readonly("scores", &LayerSensitivity::scores)
      .def(
          "score",
          [](const LayerSensitivity& l, const std::string& role, const std::string& format) {
            const auto block = formats::parse_block_format(format);
            if (const auto* s = plan::find_score(l, plan::parse_operand(role, "score()"), block)) return *s;
            throw Error("the score of " + l.name + " for " + role + " in " + format, "what was measured",
                        "profile with that format");
          },
          "role"_a, "format"_a);
  py::class_<Sensitivity>(m, "Sensitivity", "How much the loss suffers from each format in each layer and operand.")
      .def_readonly("model", &Sensitivity::model)
      .def_readonly("method", &Sensitivity::method)
      .def_readonly("labels", &Sensitivity::labels)
      .def_readonly("samples", &Sensitivity::samples)
      .def_readonly("seed", &Sensitivity::seed)
      .def_readonly("layers", &Sensitivity::layers)
      .def_readonly("ties", &Sensitivity::ties)
      .def_readonly("edges", &Sensitivity::edges)
      .def("to_json", [](const Sensitivity& s) { return plan::to_json(s); })
      .def_static(
          "from_json",
          [](const std::string& text, const std::string& where) { return plan::sensitivity_from_json(text, where); },
          "text"_a, "where"_a = "sensitivity")
      .def_static("load", &plan::load_sensitivity, "path"_a)
      .def("table", &observe::sensitivity_table, "max_rows"_a = 0)
      .def("hessian_table", &observe::hessian_table)
      .def("picture", &observe::sensitivity_picture, "An SVG document.")
      .def(py::self == py::self)
      .def("__str__", [](const Sensitivity& s) { return observe::sensitivity_table(s); });
  py::class_<LayerStatistics>(m, "LayerStatistics", "Range and outliers of one operand over all samples.")
      .def_readonly("layer", &LayerStatistics::layer)
      .def_property_readonly("role", [](const LayerStatistics& s) { return plan::name(s.role); })
      .def_property_readonly("elements", [](const LayerStatistics& s) { return s.values.elements; })
      .def_property_readonly("absmax", [](const LayerStatistics& s) { return s.values.absmax; })
      .def_property_readonly("rms", [](const LayerStatistics& s) { return s.values.rms; })
      .def_property_readonly("kurtosis", [](const LayerStatistics& s) { return s.values.kurtosis; })
      .def_property_readonly("beyond_six_sigma", [](const LayerStatistics& s) { return s.values.beyond_six_sigma; });
}

void bind_hessian(py::module_& m) {
  using namespace engine::sensitivity;
  py::class_<HessianResult>(m, "HessianResult", "Of the whole model, all trainable parameters.")
      .def_readonly("eigenvalues", &HessianResult::eigenvalues)
      .def_readonly("trace", &HessianResult::trace)
      .def_readonly("trace_stderr", &HessianResult::trace_stderr)
      .def_readonly("probes", &HessianResult::probes)
      .def_readonly("by_differences", &HessianResult::by_differences);
  py::class_<Curvature>(m, "Curvature", "Products with the Hessian of loss(batch) with respect to parameters.")
      .def(py::init([](std::vector<at::Tensor> parameters, std::function<at::Tensor(int64_t)> loss,
                       std::vector<double> weights) {
             py::gil_scoped_release release;
             return std::make_unique<Curvature>(
                 CurvatureData{std::move(parameters), std::move(loss), std::move(weights)});
           }),
           "parameters"_a, "loss"_a, "weights"_a = std::vector<double>{1.0})
      .def("product", &Curvature::product, "v"_a, "only"_a, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("by_differences", &Curvature::by_differences)
      .def_property_readonly("reason", &Curvature::reason);
  m.def(
      "top_eigenvalues",
      [](Curvature& c, const std::vector<size_t>& only, int64_t count, int64_t iterations, double tolerance,
         uint64_t seed) {
        return top_eigenvalues(c, only, count, {.iterations = iterations, .tolerance = tolerance, .seed = seed});
      },
      "curvature"_a, "only"_a, "count"_a = 1, "iterations"_a = 50, "tolerance"_a = 1e-3, "seed"_a = 0,
      py::call_guard<py::gil_scoped_release>());
  m.def(
      "traces",
      [](Curvature& c, const std::vector<std::vector<size_t>>& blocks, int64_t probes, double error, uint64_t seed) {
        const Traces t = traces(c, blocks, {.probes = probes, .trace_error = error, .seed = seed});
        std::vector<std::pair<double, double>> out;
        for (const Trace& b : t.blocks) out.emplace_back(b.mean, b.standard_error);
        return std::make_tuple(std::make_pair(t.whole.mean, t.whole.standard_error), out, t.probes);
      },
      "curvature"_a, "blocks"_a, "probes"_a = 100, "error"_a = 0.05, "seed"_a = 0,
      py::call_guard<py::gil_scoped_release>(), "((mean, s.e.) of the whole, those of the blocks, probes)");
  m.def(
      "add_hessian",
      [](Sensitivity sensitivity, const std::vector<engine::LayerParameter>& parameters,
         std::function<at::Tensor(int64_t)> loss, std::vector<double> weights, int64_t eigenvalues, int64_t probes,
         double error, uint64_t seed) {
        py::gil_scoped_release release;
        ParameterBlocks blocks = parameter_blocks(parameters, sensitivity);
        Curvature curvature({std::move(blocks.parameters), std::move(loss), std::move(weights)});
        HessianResult whole =
            add_hessian(sensitivity, curvature, blocks.layers,
                        {.eigenvalues = eigenvalues, .probes = probes, .trace_error = error, .seed = seed});
        return std::make_pair(std::move(sensitivity), std::move(whole));
      },
      "sensitivity"_a, "parameters"_a, "loss"_a, "weights"_a, "eigenvalues"_a, "probes"_a, "error"_a, "seed"_a,
      "The sensitivity with the columns of the Hessian, and what holds for the whole model.");
}

void bind_training(py::module_& m) {
  using namespace engine::sensitivity;
  py::class_<TrainingScore>(m, "TrainingScore", "The whole model with one operand in one format.")
      .def_property_readonly("role", [](const TrainingScore& s) { return plan::name(s.operand); })
      .def_property_readonly("format", [](const TrainingScore& s) { return formats::to_string(s.format); })
      .def_readonly("bias", &TrainingScore::bias)
      .def_readonly("loss_change", &TrainingScore::loss_change)
      .def_property_readonly("score", &TrainingScore::score);
  py::class_<MeanGradient>(m, "MeanGradient");
  using Step = std::function<std::pair<std::vector<std::optional<at::Tensor>>, double>(int64_t)>;
  m.def(
      "mean_gradient",
      [](const Step& step, int64_t count) {
        return mean_gradient(
            [&](int64_t i, double& loss) {
              auto [optional, value] = step(i);
              loss = value;
              std::vector<at::Tensor> gradients;
              for (auto& g : optional) gradients.push_back(g.value_or(at::Tensor()));
              return gradients;
            },
            count);
      },
      "step"_a, "batches"_a, "step(batch) gives (gradients, loss).");
  m.def(
      "training_score",
      [](const std::string& role, const std::string& format, const MeanGradient& low, const MeanGradient& fp32) {
        return compare(plan::parse_operand(role, "role"), formats::parse_block_format(format), low, fp32);
      },
      "role"_a, "format"_a, "low"_a, "fp32"_a);
  m.def(
      "single_operand_plan",
      [](const std::string& role, const std::string& format, const std::string& layers) {
        return single_operand_plan(plan::parse_operand(role, "role"), formats::parse_block_format(format), layers);
      },
      "role"_a, "format"_a, "layers"_a = "*");
  m.def("training_table", &training_table, "scores"_a);
  m.def("statistics_table", &statistics_table, "statistics"_a);
  m.attr("training_batches") = kTrainingBatches;
  m.def("all_block_formats", [] {
    std::vector<std::string> all;
    for (const BlockFormat& f : all_block_formats()) all.push_back(formats::to_string(f));
    return all;
  });
}

}  // namespace

void bind_sensitivity(py::module_& m) {
  bind_values(m);
  bind_hessian(m);
  bind_training(m);
  py::class_<ProfileResult>(m, "ProfileResult")
      .def_readonly("sensitivity", &ProfileResult::sensitivity)
      .def_readonly("statistics", &ProfileResult::statistics)
      .def_readonly("warnings", &ProfileResult::warnings);
  py::class_<Profile>(m, "SensitivityProfile", "The measurement, batch by batch.")
      .def(py::init([](engine::Runtime& runtime, const std::vector<std::string>& formats, int64_t samples,
                       uint64_t seed, bool sampled_labels) {
             return std::make_unique<Profile>(runtime,
                                              ProfileOptions{parse_all(formats), samples, seed, sampled_labels});
           }),
           "runtime"_a, "formats"_a, "samples"_a, "seed"_a, "sampled_labels"_a, py::keep_alive<1, 2>())
      .def(
          "add",
          [](Profile& p, const at::Tensor& loss, const std::optional<at::Tensor>& output,
             const std::optional<at::Tensor>& target, int64_t samples) {
            py::gil_scoped_release release;
            p.add(loss, output.value_or(at::Tensor()), target.value_or(at::Tensor()), samples);
          },
          "loss"_a, "output"_a.none(true), "target"_a.none(true), "samples"_a)
      .def_property_readonly("enough", &Profile::enough)
      .def("finish", &Profile::finish);
}

}  // namespace hpqf::python
