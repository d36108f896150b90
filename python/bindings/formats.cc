#include <pybind11/stl.h>

#include "bindings.h"
#include "hpqf/formats/block_format.h"
#include "hpqf/formats/format.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {

void bind_formats(py::module_& m) {
  using formats::FormatInfo;
  py::class_<FormatInfo>(m, "FormatInfo", "One number format: a row of the table that defines all of them.")
      .def_property_readonly("name", [](const FormatInfo& f) { return f.name; })
      .def_readonly("bits", &FormatInfo::bits)
      .def_readonly("exponent_bits", &FormatInfo::exponent_bits)
      .def_readonly("mantissa_bits", &FormatInfo::mantissa_bits)
      .def_readonly("largest", &FormatInfo::largest)
      .def_readonly("smallest_normal", &FormatInfo::smallest_normal)
      .def_readonly("smallest", &FormatInfo::smallest)
      .def_readonly("is_integer", &FormatInfo::is_integer)
      .def_readonly("saturates", &FormatInfo::saturates)
      .def_readonly("has_infinity", &FormatInfo::has_infinity)
      .def_readonly("has_nan", &FormatInfo::has_nan)
      .def_property_readonly("default_block",
                             [](const FormatInfo& f) { return to_string(formats::default_block(f.format)); })
      .def("__repr__", [](const FormatInfo& f) {
        return "<hpqf format " + std::string(f.name) + ", " + std::to_string(f.bits) + " bits>";
      });
  m.def(
      "formats",
      [] {
        const auto all = formats::all_formats();
        return std::vector<FormatInfo>(all.begin(), all.end());
      },
      "Every number format HPQF knows, as a list of FormatInfo.");
  m.def(
      "block_format", [](const std::string& text) { return to_string(formats::parse_block_format(text)); }, "text"_a,
      "The shortest spelling of a block format such as 'int8[1x64]'; hpqf.Error when there is no such format.");
}

}  // namespace hpqf::python
