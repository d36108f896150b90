// The profiler.
#include <pybind11/stl.h>

#include "bindings.h"
#include "hpqf/observe/profile/profiler.h"
#include "hpqf/observe/relay.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {
namespace {

py::dict point(const observe::RooflinePoint& p) {
  return py::dict("layer"_a = p.layer, "op"_a = p.op, "pass"_a = observe::name(p.pass),
                  "format"_a = formats::name(p.format), "flop_per_byte"_a = p.intensity,
                  "flop_per_second"_a = p.achieved, "attainable"_a = p.attainable,
                  "bound"_a = !p.attainable    ? "unknown"
                              : p.memory_bound ? "memory"
                                               : "compute");
}

}  // namespace

void bind_profile(py::module_& m) {
  using observe::EventSink;
  using observe::Profiler;
  using observe::ProfileReport;
  using observe::RateTable;
  using observe::Relay;

  py::class_<RateTable>(m, "RateTable", "What a device can do at best, by format; what is not in it is unknown.")
      .def(py::init<>())
      .def_readwrite("device", &RateTable::device)
      .def(
          "set",
          [](RateTable& table, const std::string& format, double per_second, std::string basis, std::string source) {
            table.peaks[formats::parse_format(format)] = {per_second, std::move(basis), std::move(source)};
            table = RateTable::from_json(table.to_json());  // checks the entry
          },
          "format"_a, "flops_per_second"_a, "basis"_a, "source"_a)
      .def(
          "set_bandwidth",
          [](RateTable& table, double per_second, std::string basis, std::string source) {
            table.bandwidth = {per_second, std::move(basis), std::move(source)};
            table = RateTable::from_json(table.to_json());
          },
          "bytes_per_second"_a, "basis"_a, "source"_a)
      .def("to_json", &RateTable::to_json, "indent"_a = 1)
      .def_static("from_json", &RateTable::from_json, "text"_a, "where"_a = "rates");

  py::class_<ProfileReport>(m, "ProfileReport")
      .def_readonly("audit", &ProfileReport::audit)
      .def("table", &ProfileReport::table, "max_rows"_a = 0)
      .def("summary", &ProfileReport::summary)
      .def("to_json", &ProfileReport::to_json, "indent"_a = 1)
      .def("roofline",
           [](const ProfileReport& report) {
             py::list points;
             for (const auto& p : report.roofline()) points.append(point(p));
             return points;
           })
      .def_property_readonly("low_precision_flops", &ProfileReport::low_precision_flops)
      .def_property_readonly("low_precision_time", &ProfileReport::low_precision_time)
      .def_property_readonly("utilisation", [](const ProfileReport& r) { return r.utilisation().u; })
      .def_property_readonly("mfu", [](const ProfileReport& r) { return r.utilisation().mfu; })
      .def("__str__", [](const ProfileReport& r) { return r.table(); });

  py::class_<Profiler, EventSink, std::shared_ptr<Profiler>>(m, "Profiler")
      .def(py::init([](RateTable rates, int64_t trace_events) {
             return std::make_shared<Profiler>(observe::ProfilerOptions{std::move(rates), trace_events, {}});
           }),
           "rates"_a, "trace_events"_a)
      .def("start", &Profiler::start)
      .def("stop", &Profiler::stop)
      .def("step", &Profiler::step)
      .def("report", &Profiler::report)
      .def("write_trace", &Profiler::write_trace, "path"_a, "max_bytes"_a = observe::kMaxTraceBytes,
           py::call_guard<py::gil_scoped_release>());

  py::class_<Relay, EventSink, std::shared_ptr<Relay>>(m, "Relay", "Hands events to every sink that listens.")
      .def(py::init<>())
      .def("add", &Relay::add, "sink"_a)
      .def(
          "remove", [](Relay& relay, const std::shared_ptr<EventSink>& sink) { relay.remove(sink.get()); }, "sink"_a);
}

}  // namespace hpqf::python
