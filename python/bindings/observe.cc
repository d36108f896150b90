#include <pybind11/stl.h>

#include "bindings.h"
#include "hpqf/observe/audit.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {

void bind_observe(py::module_& m) {
  using observe::Audit;
  using observe::AuditReport;
  using observe::AuditRow;
  using observe::EventSink;
  using observe::UncountedOp;

  py::class_<AuditRow>(m, "AuditRow",
                       "What ran for one layer, op and pass. Block formats are text; seconds are measured.")
      .def_readonly("layer", &AuditRow::layer)
      .def_readonly("op", &AuditRow::op)
      .def_property_readonly("pass_", [](const AuditRow& r) { return observe::name(r.pass); })
      .def_readonly("requested_a", &AuditRow::requested_a)
      .def_readonly("requested_b", &AuditRow::requested_b)
      .def_readonly("effective_a", &AuditRow::effective_a)
      .def_readonly("effective_b", &AuditRow::effective_b)
      .def_readonly("implementation", &AuditRow::implementation)
      .def_readonly("reason", &AuditRow::reason)
      .def_readonly("calls", &AuditRow::calls)
      .def_readonly("flops", &AuditRow::flops)
      .def_readonly("bytes", &AuditRow::bytes)
      .def_readonly("seconds", &AuditRow::seconds)
      .def("__repr__", [](const AuditRow& r) {
        return "<hpqf.AuditRow " + r.layer + " " + r.op + " " + observe::name(r.pass) + " " + r.requested_a + "*" +
               r.requested_b + " -> " + r.effective_a + "*" + r.effective_b + " by " + r.implementation + ">";
      });
  py::class_<UncountedOp>(m, "UncountedOp", "An op outside of the plan (add, relu, ...), from sampled steps.")
      .def_readonly("op", &UncountedOp::op)
      .def_readonly("share_of_time", &UncountedOp::share_of_time)
      .def_readonly("calls", &UncountedOp::calls);
  py::class_<AuditReport::Share>(m, "AuditShare", "Share of GEMM FLOPs and of counted time that ran in `format`.")
      .def_readonly("format", &AuditReport::Share::format)
      .def_readonly("emulated", &AuditReport::Share::emulated)
      .def_readonly("flops", &AuditReport::Share::flops)
      .def_readonly("seconds", &AuditReport::Share::seconds);
  py::class_<AuditReport>(m, "AuditReport", "What really ran: requested and effective formats per layer, op and pass.")
      .def_readonly("rows", &AuditReport::rows)
      .def_readonly("uncounted", &AuditReport::uncounted)
      .def_readonly("total_seconds", &AuditReport::total_seconds)
      .def_readonly("steps", &AuditReport::steps)
      .def("shares", &AuditReport::shares)
      .def("to_json", &AuditReport::to_json, "indent"_a = 1)
      .def_static("from_json", &AuditReport::from_json, "text"_a, "where"_a = "audit")
      .def("table", &AuditReport::table, "max_rows"_a = 0)
      .def("__str__", [](const AuditReport& r) { return r.table(); });

  py::class_<EventSink, std::shared_ptr<EventSink>>(m, "EventSink");
  py::class_<Audit, EventSink, std::shared_ptr<Audit>>(m, "Audit", "Collects the events of a runtime.")
      .def(py::init<>())
      .def("add_step", &Audit::add_step, "seconds"_a)
      .def("report", &Audit::report)
      .def("restore", &Audit::restore, "earlier"_a)
      .def("take_observations", &Audit::take_observations, "step"_a)
      .def("clear", &Audit::clear);
}

}  // namespace hpqf::python
