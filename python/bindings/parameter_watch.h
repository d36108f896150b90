// Tells whether any parameter of a model lives elsewhere than before: after model.to(dtype), p.data = x, m.weight = p,
// load_state_dict(assign=True), or a lazy module that has just been built. About 20 ns a parameter.
#pragma once
#include <torch/csrc/utils/pybind.h>

#include <tuple>
#include <vector>

namespace hpqf::python {

class ParameterWatch {
 public:
  using Slot = std::tuple<pybind11::dict, pybind11::str>;  // module._parameters and a name in it
  explicit ParameterWatch(std::vector<Slot> slots);
  bool moved() const;

 private:
  struct Entry {
    pybind11::dict parameters;
    pybind11::str name;
    PyObject* parameter;                                // compared, never followed ...
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // ... and the weak pointer keeps an address from being reused
  };
  std::vector<Entry> entries_;
};

}  // namespace hpqf::python
