#include <pybind11/stl.h>

#include <cmath>
#include <memory>

#include "bindings.h"
#include "hpqf/device/database.h"
#include "hpqf/device/resolve.h"
#include "hpqf/device/share.h"

namespace py = pybind11;
using namespace py::literals;

namespace hpqf::python {
namespace {

using device::Database;
using device::DeviceFacts;

// A device and the database that explains it.
struct Known {
  std::shared_ptr<const Database> database;
  DeviceFacts facts;
};

py::object to_python(const device::Value& value) {
  using Kind = device::Value::Kind;
  switch (value.kind) {
    case Kind::number:
      if (std::abs(value.number) < 1e15 && value.number == std::trunc(value.number))
        return py::int_(static_cast<long long>(value.number));
      return py::float_(value.number);
    case Kind::text:
      return py::str(value.text);
    case Kind::flag:
      return py::bool_(value.flag);
    case Kind::list: {
      py::list list;
      for (const device::Value& item : value.items) list.append(to_python(item));
      return std::move(list);
    }
    case Kind::object:
      break;
  }
  py::dict dict;
  for (size_t i = 0; i < value.items.size(); ++i) dict[py::str(value.keys[i])] = to_python(value.items[i]);
  return std::move(dict);
}

py::object value_of(const Known& known, const std::string& key) {
  known.database->schema().field(key);
  const device::Fact* fact = known.facts.find(key);
  return fact ? to_python(fact->value) : py::none();
}

py::dict fact_of(const Known& known, const std::string& key) {
  const device::Field& field = known.database->schema().field(key);
  py::dict out;
  out["unit"] = field.unit;
  out["meaning"] = field.meaning;
  const device::Fact* fact = known.facts.find(key);
  out["value"] = fact ? to_python(fact->value) : py::none();
  if (!fact) {
    out["unknown"] = known.database->why_unknown(key);
    return out;
  }
  out["source"] = fact->source->title;
  out["url"] = fact->source->url;
  out["date"] = fact->source->date;
  out["trust"] = name(fact->source->trust);
  out["note"] = fact->note;
  out["user"] = fact->user;
  return out;
}

py::dict resolution_of(const Known& known, const std::string& format) {
  const device::AchievableFactors factors(known.database->devices());
  const device::Resolution r = device::resolve(formats::parse_format(format), known.facts, factors);
  py::dict out;
  out["kind"] = name(r.kind);
  out["reason"] = r.reason;
  out["rate_tera_ops"] = r.rate ? py::object(py::float_(r.rate->tera)) : py::none();
  out["rate_source"] = name(r.rate ? r.rate->source : device::RateSource::none);
  out["rate_basis"] = r.rate ? r.rate->basis : "";
  out["gain"] = r.gain ? py::object(py::float_(*r.gain)) : py::none();
  out["gain_over"] = formats::name(r.baseline);
  return out;
}

std::shared_ptr<const Database> load(const std::string& folder, const std::vector<std::string>& overrides) {
  return std::make_shared<Database>(Database::load(folder.empty() ? device::shipped_database() : folder, overrides));
}

}  // namespace

void bind_devices(py::module_& m) {
  py::class_<Known>(m, "Device", "What is known of one device. `device[key]` is a value, None where it is not known.")
      .def_property_readonly("id", [](const Known& k) { return k.facts.id(); })
      .def_property_readonly("name", [](const Known& k) { return k.facts.name(); })
      .def_property_readonly("vendor", [](const Known& k) { return k.facts.vendor(); })
      .def(
          "keys",
          [](const Known& k) {
            std::vector<std::string> keys;
            for (const auto& entry : k.facts.facts()) keys.push_back(entry.first);
            return keys;
          },
          "The fields that are known.")
      .def("__getitem__", &value_of, "key"_a)
      .def("fact", &fact_of, "key"_a, "Value, unit, meaning, and where it is from; or why it is not known.")
      .def("resolve", &resolution_of, "format"_a,
           "Whether a format runs natively, is emulated or is refused, why, and how fast (10^12 operations a second).")
      .def(
          "partition",
          [](const Known& k, const std::string& profile) {
            return Known{k.database, device::partition(k.facts, profile)};
          },
          "profile"_a, "One instance of a partition profile such as '1g.10gb'.")
      .def("__repr__", [](const Known& k) {
        return "<hpqf device " + k.facts.id() + ", " + std::to_string(k.facts.facts().size()) + " facts>";
      });
  m.def(
      "devices",
      [](const std::string& database, const std::vector<std::string>& overrides) {
        const auto loaded = load(database, overrides);
        std::vector<Known> out;
        for (const DeviceFacts& facts : loaded->devices()) out.push_back({loaded, facts});
        return out;
      },
      "database"_a = "", "overrides"_a = std::vector<std::string>{},
      "Every device in the database that came with HPQF, or in another folder; overrides are files laid over it.");
  m.def(
      "device",
      [](const std::string& name, const std::string& database, const std::vector<std::string>& overrides) {
        const auto loaded = load(database, overrides);
        return Known{loaded, loaded->device(name)};
      },
      "name"_a, "database"_a = "", "overrides"_a = std::vector<std::string>{},
      "The device of this id, market name, alias or driver name; hpqf.Error with the nearest names.");
}

}  // namespace hpqf::python
