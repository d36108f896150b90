// A small database for tests: a schema of the fields the code reads, and devices written in one line.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "hpqf/base/file.h"
#include "hpqf/device/database.h"

namespace hpqf::device {

inline constexpr const char* kFields = R"({"schema_version": 1,
"groups": [{"name": "identity", "title": "Names", "unknown": "nobody said"},
           {"name": "peak", "title": "Peaks", "unknown": "no figure is published"}],
"fields": [
 {"key": "identity.name", "group": "identity", "type": "text", "unit": "", "meaning": "market name"},
 {"key": "identity.match", "group": "identity", "type": "list", "unit": "", "meaning": "driver names"},
 {"key": "identity.match_not", "group": "identity", "type": "list", "unit": "", "meaning": "not these"},
 {"key": "identity.match_memory_gb", "group": "identity", "type": "number", "unit": "GB", "meaning": "which of two"},
 {"key": "units.count", "group": "peak", "type": "integer", "unit": "", "meaning": "units"},
 {"key": "units.boost_clock_mhz", "group": "peak", "type": "number", "unit": "MHz", "meaning": "clock"},
 {"key": "power.throttle_c", "group": "peak", "type": "number", "unit": "\u00b0C", "meaning": "temperature"},
 {"key": "peak.bf16.dense", "group": "peak", "type": "number", "unit": "TFLOP/s", "meaning": "bf16 peak"},
 {"key": "partition.profile_slices", "group": "peak", "type": "object", "unit": "", "meaning": "slices"},
 {"key": "support.bf16.matmul", "group": "peak", "type": "flag", "unit": "", "meaning": "is there any"}]})";

inline std::string device_text(const std::string& id, const std::string& facts) {
  return R"({"schema_version": 1, "id": ")" + id +
         R"(", "sources": {"sheet": {"title": "A sheet", "url": "https://x",)" +
         R"( "date": "2024-03", "trust": "sheet"}}, "facts": {)" + facts + "}}";
}

inline std::string fact_text(const std::string& key, const std::string& value) {
  return "\"" + key + "\": {\"value\": " + value + ", \"source\": \"sheet\"}";
}

// Facts built in code, for pure functions.
class Facts {
 public:
  explicit Facts(std::string id = "one") : device_(std::move(id)) {}
  Facts& number(const std::string& key, double x) {
    Value value;
    value.number = x;
    return put(key, value);
  }
  Facts& flag(const std::string& key, bool x) {
    Value value;
    value.kind = Value::Kind::flag;
    value.flag = x;
    return put(key, value);
  }
  Facts& text(const std::string& key, const std::string& x) {
    Value value;
    value.kind = Value::Kind::text;
    value.text = x;
    return put(key, value);
  }
  Facts& texts(const std::string& key, const std::vector<std::string>& all) {
    Value value;
    value.kind = Value::Kind::list;
    for (const std::string& x : all) {
      Value item;
      item.kind = Value::Kind::text;
      item.text = x;
      value.items.push_back(item);
    }
    return put(key, value);
  }
  Facts& entry(const std::string& key, const std::string& name, double x) {
    const Fact* old = device_.find(key);
    Value value = old ? old->value : Value{};
    value.kind = Value::Kind::object;
    Value item;
    item.number = x;
    value.keys.push_back(name);
    value.items.push_back(item);
    return put(key, value);
  }
  Facts& put(const std::string& key, const Value& value) {
    device_.set({key, value, std::make_shared<Source>(Source{"test", "A test", "", "2024", Trust::sheet}), "", false});
    return *this;
  }
  operator DeviceFacts() const { return device_; }

 private:
  DeviceFacts device_;
};

// A folder that is gone afterwards.
class DatabaseFolder {
 public:
  explicit DatabaseFolder(const std::string& name = "devices") {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) / (name + "_" + test->test_suite_name() + test->name());
    std::filesystem::remove_all(path_);
    if (name == "devices") put("fields.json", kFields);
  }
  ~DatabaseFolder() { std::filesystem::remove_all(path_); }
  std::string put(const std::string& name, const std::string& text) {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    base::atomic_write(file.string(), text);
    return file.string();
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace hpqf::device
