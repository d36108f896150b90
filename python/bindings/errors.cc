// hpqf::Error becomes hpqf.Error, a Python class with the same three parts, so that Python code can raise it as well.
#include "bindings.h"
#include "hpqf/base/error.h"

namespace py = pybind11;

namespace hpqf::python {
namespace {

py::handle g_error_type;  // hpqf.errors.Error; owned by its module for the life of the process

void translate(std::exception_ptr exception) {
  try {
    if (exception) std::rethrow_exception(exception);
  } catch (const Error& e) {
    PyErr_SetObject(g_error_type.ptr(), py::make_tuple(e.asked(), e.allowed(), e.todo()).ptr());
  }
}

}  // namespace

void bind_errors(py::module_& m) {
  py::object type = py::module_::import("hpqf.errors").attr("Error");
  g_error_type = type.release();
  py::register_exception_translator(&translate);
}

}  // namespace hpqf::python
