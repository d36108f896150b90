// One fact about a device: a value, and who says so.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::device {

// A value as it stands in a file. Lists and objects nest.
struct HPQF_API Value {
  enum class Kind : uint8_t { number, text, flag, list, object };
  Kind kind = Kind::number;
  double number = 0;  // finite; whole numbers are exact up to 2^53
  bool flag = false;
  std::string text;
  std::vector<Value> items;       // of a list, or the values of an object
  std::vector<std::string> keys;  // of an object, in the order of `items`

  const Value* at(std::string_view key) const;  // nullptr when this is no object or has no such key
  std::string shown() const;                    // "989.4", "yes", "HBM3", "a, b", "{compute: 1, memory: 1}"
  std::string json() const;                     // on one line
  bool operator==(const Value&) const = default;
};

// How far a source is to be believed.
enum class Trust : uint8_t {
  sheet,     // the maker's data sheet or manual
  measured,  // somebody measured it and says how
  several,   // several independent places agree
  single,    // one place says so
  derived,   // computed from other facts
};
HPQF_API const char* name(Trust trust);

struct Source {
  std::string name;  // inside its file
  std::string title, url;
  std::string date;  // "2024", "2024-03" or "2024-03-18": when it was published or read
  Trust trust = Trust::single;
};

struct Fact {
  std::string key;
  Value value;
  std::shared_ptr<const Source> source;  // never null
  std::string note;
  bool user = false;  // from a file of the user, laid over the database
};

}  // namespace hpqf::device
