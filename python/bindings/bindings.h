// The extension module `hpqf._C`, one function per group of names. No arithmetic and no decisions live here.
#pragma once
#include <pybind11/pybind11.h>

namespace hpqf::python {

void bind_errors(pybind11::module_& m);
void bind_formats(pybind11::module_& m);
void bind_devices(pybind11::module_& m);
void bind_plan(pybind11::module_& m);
void bind_policies(pybind11::module_& m);
void bind_observe(pybind11::module_& m);
void bind_profile(pybind11::module_& m);  // after bind_observe
void bind_monitor(pybind11::module_& m);  // after bind_engine and bind_profile
void bind_engine(pybind11::module_& m);
void bind_rounding(pybind11::module_& m);
void bind_sensitivity(pybind11::module_& m);
void bind_train(pybind11::module_& m);
void bind_allocate(pybind11::module_& m);

}  // namespace hpqf::python
