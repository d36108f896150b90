#include "bindings.h"

PYBIND11_MODULE(_C, m) {
  m.attr("version") = HPQF_VERSION;
  hpqf::python::bind_errors(m);
  hpqf::python::bind_formats(m);
  hpqf::python::bind_devices(m);
  hpqf::python::bind_plan(m);
  hpqf::python::bind_policies(m);
  hpqf::python::bind_observe(m);
  hpqf::python::bind_engine(m);
  hpqf::python::bind_rounding(m);
  hpqf::python::bind_sensitivity(m);
  hpqf::python::bind_train(m);
  hpqf::python::bind_profile(m);
  hpqf::python::bind_monitor(m);
  hpqf::python::bind_allocate(m);
}
