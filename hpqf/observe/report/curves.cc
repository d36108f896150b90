// Curves over steps: loss, accuracy, loss scale, gradients, throughput.
#include <fmt/format.h>

#include "hpqf/observe/report/html.h"
#include "hpqf/observe/report/line_chart.h"
#include "hpqf/observe/report/sections.h"

namespace hpqf::observe {
namespace {

constexpr double kSmoothing = 0.05;

std::vector<Curve> curves(const Series& mine, const RunRecord* other, const Series RunRecord::*member,
                          const char* name) {
  std::vector<Curve> out;
  if (!mine.empty()) out.push_back({name, &mine, false});
  if (other && !(other->*member).empty())
    out.push_back({std::string(name) + ", compared run", &(other->*member), true});
  return out;
}

bool moves(const Series& series) {
  for (const Series::Bucket& b : series.buckets())
    if (b.min != series.buckets().front().min || b.max != series.buckets().front().min) return true;
  return false;
}

std::string skipped_table(const RunRecord& run) {
  if (run.skipped == 0) return "";
  std::vector<std::vector<std::string>> rows;
  constexpr size_t kMost = 100;
  for (const SkippedStep& step : run.skipped_steps) {
    if (rows.size() == kMost) break;
    rows.push_back({html::grouped(step.step), html::escaped(step.cause)});
  }
  std::string more;
  if (run.skipped > static_cast<int64_t>(rows.size()))
    more = html::hint(fmt::format("{} more are in metrics.jsonl.", html::grouped(run.skipped - rows.size())));
  return fmt::format("<details><summary>{} skipped, and why</summary>{}{}</details>\n", html::step_count(run.skipped),
                     html::table({"step", "cause"}, rows, {0}, "Skipped steps"), more);
}

}  // namespace

std::string curves_section(const RunRecord& run, const RunRecord* other) {
  LineChart loss{.id = "loss", .title = "Loss", .curves = curves(run.loss, other, &RunRecord::loss, "training loss")};
  loss.smoothing = kSmoothing;
  for (const SkippedStep& step : run.skipped_steps) loss.marks.push_back(step.step);
  loss.marks_name = run.skipped > static_cast<int64_t>(run.skipped_steps.size())
                        ? fmt::format("skipped step (the first {})", html::grouped(run.skipped_steps.size()))
                        : "skipped step";
  for (const EvaluationRecord& e : run.evaluations) loss.points.push_back({static_cast<double>(e.step), e.loss});
  loss.points_name = "validation loss";

  LineChart accuracy{.id = "accuracy", .title = "Validation accuracy", .unit = "%"};
  for (const EvaluationRecord& e : run.evaluations)
    if (e.accuracy) accuracy.points.push_back({static_cast<double>(e.step), 100 * *e.accuracy});
  accuracy.points_name = "accuracy, %";
  accuracy.first_step = static_cast<double>(run.first_step);
  accuracy.last_step = static_cast<double>(run.last_step);

  LineChart scale{.id = "loss-scale",
                  .title = "Loss scale",
                  .curves = curves(run.loss_scale, other, &RunRecord::loss_scale, "loss scale"),
                  .steps = true};
  scale.marks = loss.marks;
  scale.marks_name = loss.marks_name;
  LineChart norm{.id = "grad-norm",
                 .title = "Gradient norm",
                 .unit = "2-norm before clipping",
                 .curves = curves(run.grad_norm, other, &RunRecord::grad_norm, "gradient norm"),
                 .smoothing = kSmoothing};
  LineChart rate{.id = "throughput",
                 .title = "Throughput",
                 .unit = "samples per second",
                 .curves = curves(run.samples_per_second, other, &RunRecord::samples_per_second, "samples per second"),
                 .smoothing = kSmoothing};
  LineChart lr{.id = "lr",
               .title = "Learning rate",
               .curves = curves(run.lr, other, &RunRecord::lr, "learning rate"),
               .steps = true};

  std::string body, constants;
  std::string charts = draw(loss);
  if (!accuracy.points.empty()) charts += draw(accuracy);
  const auto unless_constant = [&](const LineChart& chart, const Series& series, const char* name) {
    if (series.empty()) return;
    if (moves(series) || other)
      charts += draw(chart);
    else
      constants += fmt::format("{}{} {} throughout", constants.empty() ? "" : "; ", name,
                               html::number(series.buckets().front().min));
  };
  unless_constant(scale, run.loss_scale, "loss scale");
  charts += draw(norm);
  charts += draw(rate);
  unless_constant(lr, run.lr, "learning rate");
  if (charts.empty()) {
    body = html::hint("There are no steps to draw: a run writes metrics.jsonl from its first step on.");
  } else {
    body = "<div class=\"charts\">" + charts + "</div>\n";
  }
  if (run.loss.nonfinite() > 0)
    body += fmt::format("<p class=\"note\">The loss was not finite in {}; curves leave these out.</p>\n",
                        html::step_count(run.loss.nonfinite()));
  if (!constants.empty()) body += fmt::format("<p>{}.</p>\n", constants);
  if (run.evaluations.empty() && !charts.empty())
    body += html::hint("Validation over time: <code>hpqf train --eval-every N</code>.");
  body += skipped_table(run);
  return html::section("curves", "Loss and accuracy", "", "metrics.jsonl, evaluations.jsonl", body);
}

}  // namespace hpqf::observe
