// Facts about one device that cannot all be true. Public tables are full of them: sparse peaks entered as dense, a
// vector peak as the matrix peak, a bandwidth a thousand times too high. Each rule is a pure function on the facts and
// says nothing where a fact it needs is unknown.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/facts.h"

namespace hpqf::device {

struct Breach {
  std::string device;             // id
  std::string rule;               // name of the rule
  std::vector<std::string> keys;  // the facts that disagree
  std::string text;               // how, with the numbers
  bool operator==(const Breach&) const = default;
};

struct Rule {
  const char* name;
  const char* says;  // in one line, for people
  void (*check)(const DeviceFacts& device, std::vector<Breach>& found);
};

HPQF_API std::span<const Rule> rules();
HPQF_API std::vector<Breach> breaches(const DeviceFacts& device);  // of all rules, in their order

}  // namespace hpqf::device
