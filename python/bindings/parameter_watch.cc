#include "parameter_watch.h"

#include <torch/csrc/autograd/python_variable.h>

namespace py = pybind11;

namespace hpqf::python {
namespace {

// Empty for what is no tensor or has no storage of its own (None, sharded tensors).
const c10::Storage& storage_of(PyObject* parameter) {
  static const c10::Storage none;
  if (parameter == nullptr || !THPVariable_Check(parameter)) return none;
  const at::Tensor& tensor = THPVariable_Unpack(parameter);
  return tensor.has_storage() ? tensor.unsafeGetTensorImpl()->unsafe_storage() : none;
}

}  // namespace

ParameterWatch::ParameterWatch(std::vector<Slot> slots) {
  entries_.reserve(slots.size());
  for (auto& [parameters, name] : slots) {
    PyObject* parameter = PyDict_GetItem(parameters.ptr(), name.ptr());
    entries_.push_back({parameters, name, parameter, storage_of(parameter).getWeakStorageImpl()});
  }
}

bool ParameterWatch::moved() const {
  for (const Entry& entry : entries_) {
    PyObject* parameter = PyDict_GetItem(entry.parameters.ptr(), entry.name.ptr());
    if (parameter != entry.parameter ||
        storage_of(parameter).unsafeGetStorageImpl() != entry.storage._unsafe_get_target())
      return true;
  }
  return false;
}

}  // namespace hpqf::python
