#include "apps/hpqf/doctor_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "apps/hpqf/bench_report.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

using namespace device::machine;

std::string torch_text(const TorchFacts& t) {
  auto or_without = [](const std::string& version) { return version.empty() ? std::string("without") : version; };
  std::string text = "Torch\n";
  text += fmt::format("  {:<10} {}, built for {}\n", "torch", t.version, t.cuda ? "CUDA" : t.rocm ? "ROCm" : "CPUs");
  text += fmt::format("  {:<10} {} in one operation, {} between operations ({})\n", "threads", t.threads,
                      t.interop_threads, t.backend);
  text += fmt::format("  {:<10} MKL {}, oneDNN {}, OpenMP {}; own loops for {}\n", "libraries", or_without(t.mkl),
                      or_without(t.onednn), or_without(t.openmp), t.capability);
  return text;
}

std::string with_quartiles(const Measured& m) {
  return fmt::format("{} ({}-{})", three_digits(m.median), three_digits(m.q1), three_digits(m.q3));
}

std::string products_table(const Calibration& c) {
  observe::TextTable table(
      {{"rows x in x out"}, {"format"}, {"path"}, {"product GFLOP/s"}, {"of fp32", true}, {"layer of fp32", true}});
  observe::Footnotes notes;
  std::map<std::pair<std::string, std::string>, const LayerFigure*> layers;
  for (const LayerFigure& l : c.layers) layers[{l.shape, l.format}] = &l;
  for (const ProductFigure& p : c.products) {
    const LayerFigure* layer = layers[{p.shape, p.format}];
    const bool timed = p.left_out.empty();
    table.add({p.shape, p.format, p.implementation, timed ? with_quartiles(p.gflops) : notes.cell(p.left_out),
               timed ? ratio_text(p.ratio.median) : "",
               !layer                    ? ""
               : layer->left_out.empty() ? ratio_text(layer->ratio)
                                         : "emulated"});
  }
  return table.text() + notes.text() +
         "product: forward, end to end from fp32 operands (bf16: operands that are bf16 already), median and "
         "quartiles;\n"
         "layer: forward and backward of a linear layer through the engine, best of several runs; both measured, speed "
         "as\n"
         "a multiple of fp32's\n";
}

std::string measured_text(const Calibration& c) {
  std::string text;
  if (!c.products.empty()) text += products_table(c) + "\n";
  for (const BandwidthFigure& b : c.bandwidths)
    text += fmt::format("  {:<14} {} GB/s ({})\n", b.what, with_quartiles(b.gigabytes), b.counted);
  if (!c.left_out.empty())
    text += fmt::format("  left out, for the time was too short: {}\n", fmt::join(c.left_out, ", "));
  return text;
}

std::string verdict_text(const std::vector<Verdict>& verdicts) {
  observe::TextTable table({{"format"}, {"here"}, {"because"}});
  for (const Verdict& v : verdicts) table.add({v.format, to_string(v.worth), v.text});
  return table.text();
}

std::string findings_text(const std::vector<Finding>& findings) {
  if (findings.empty()) return "  nothing was found\n";
  std::string text;
  for (const Finding& f : findings)
    text +=
        fmt::format("  {}: {} [{}]\n    why  {}\n    do   {}\n", to_string(f.severity), f.what, f.id, f.why, f.todo);
  return text;
}

}  // namespace

std::string report_text(const Diagnosis& d) {
  std::string text =
      d.recorded.empty() ? "" : fmt::format("Recorded in {}; nothing can be measured there.\n\n", d.recorded);
  text += machine_text(d.facts);
  if (d.torch) text += fmt::format("\n{}", torch_text(*d.torch));
  text += fmt::format("\nWhat pays here, with {} thread{}\n  {}\n\n", d.threads, d.threads == 1 ? "" : "s",
                      d.calibration_note);
  text += verdict_text(d.verdicts);
  if (d.calibration) text += fmt::format("\n{}", measured_text(*d.calibration));
  return fmt::format("{}\nWhat is set wrong, or good to know\n{}", text, findings_text(d.findings));
}

}  // namespace hpqf::app
