// What is known about one device.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/error.h"
#include "hpqf/base/export.h"
#include "hpqf/device/fact.h"
#include "hpqf/device/schema.h"

namespace hpqf::device {

// A value. What is not known has no fact: nothing is filled in.
class HPQF_API DeviceFacts {
 public:
  DeviceFacts() = default;
  explicit DeviceFacts(std::string id) : id_(std::move(id)) {}

  const std::string& id() const { return id_; }
  std::string name() const;    // market name; the id where it is not known
  std::string vendor() const;  // "" where it is not known
  const std::map<std::string, Fact, std::less<>>& facts() const { return facts_; }

  const Fact* find(std::string_view key) const;              // nullptr: unknown
  std::optional<double> number(std::string_view key) const;  // nullopt: unknown, or another type
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;  // of a list; empty when unknown

  void set(Fact fact);                        // replaces the fact of that key
  void lay_over(const DeviceFacts& of_user);  // its facts win, and are marked `user`

 private:
  std::string id_;
  std::map<std::string, Fact, std::less<>> facts_;
};

// One device file, checked against the schema. `id` is the stem of the file's name. Every mistake inside a fact goes
// to `mistakes`, and the fact is left out; what makes the whole file unusable (no JSON, no "facts", another id or
// version) throws. Error texts name `where`, the key, and what to do.
HPQF_API DeviceFacts parse_device(std::string_view text, std::string_view where, std::string_view id,
                                  const Schema& schema, std::vector<Error>& mistakes);

}  // namespace hpqf::device
