// Strict reading of JSON records: every Error names the file or record, the path inside it and what is allowed there.
// For .cc files only (nlohmann/json.hpp is heavy).
#pragma once
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"

namespace hpqf::base {

using Json = nlohmann::ordered_json;

// Error with line and column when the text is truncated or no JSON, and when an object has a key twice (the usual
// reading would drop the first silently), a number is beyond doubles or the nesting is deeper than 100.
HPQF_API Json parse_json(std::string_view text, std::string_view where);

// The text of a string, quoted and escaped. Bytes that are not UTF-8 become U+FFFD.
HPQF_API std::string json_quote(std::string_view text);

// One object of a record and its place, e.g. `plan.json: rule 2 (layers "conv1")`.
class HPQF_API JsonObject {
 public:
  JsonObject(const Json& value, std::string place);  // Error unless it is an object

  const std::string& place() const { return place_; }
  bool has(std::string_view key) const { return value_.contains(key); }
  void allow(std::initializer_list<std::string_view> keys) const;  // Error naming the first unknown key

  // Error when the key is missing (use has() first for optional ones) or of another type.
  std::string text(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t least) const;
  double number(std::string_view key, double least) const;  // finite
  bool boolean(std::string_view key) const;
  const Json& array(std::string_view key) const;
  const Json& object(std::string_view key) const;

  // Error unless "schema" is `schema` and "version" is 1 to `version`.
  void check_schema(std::string_view schema, int64_t version) const;

 private:
  const Json& at(std::string_view key, std::string_view wanted) const;
  [[noreturn]] void wrong_type(std::string_view key, const Json& found, std::string_view wanted) const;

  const Json& value_;
  std::string place_;
};

}  // namespace hpqf::base
