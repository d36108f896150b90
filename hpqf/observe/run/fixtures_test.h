// What the tests of run folders, exporters and reports share.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/audit.h"
#include "hpqf/observe/run/step_record.h"

namespace hpqf::observe {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_HAS_NOT(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

// The text of the Error that `call` throws; "" when it throws none.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// An empty folder that is gone with the test.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "hpqf-observe-XXXXXX").string()) {
    if (!mkdtemp(path_.data())) throw std::runtime_error("mkdtemp");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(*this / name) << text; }

 private:
  std::string path_;
};

inline StepRecord made_step(int64_t n, double loss = 0.5) {
  StepRecord step;
  step.step = n;
  step.epoch = (n - 1) / 10;
  step.loss = loss;
  step.loss_scale = 1024;
  step.lr = 0.01;
  step.samples_per_second = 64;
  step.seconds = 0.25;
  step.unix_seconds = 1.7e9 + 0.25 * static_cast<double>(n);
  return step;
}

inline RunInfo made_run() {
  RunInfo run;
  run.name = "first";
  run.model = "resnet20";
  run.data = "fashion-mnist";
  run.precision = "bf16";
  run.batch_size = 16;
  run.unix_seconds = 1.7e9;
  run.settings = {{"model", "resnet20"}, {"lr", "0.01"}, {"optimizer", "sgd"}};
  return run;
}

inline AuditReport made_audit() {
  AuditReport audit;
  audit.steps = 4;
  audit.total_seconds = 2;
  const auto row = [&](const char* layer, Pass pass, const char* asked, const char* ran, const char* implementation,
                       const char* reason, double flops, double seconds) {
    audit.rows.push_back({layer, "linear", pass, asked, asked, ran, ran, implementation, reason, 4, flops, 0, seconds});
  };
  row("a", Pass::forward, "int8", "int8", "integer.avx2", "", 600, 0.5);
  row("a", Pass::dgrad, "int8", "bf16", "emulated", "int8 has no dgrad here", 200, 0.25);
  row("b", Pass::forward, "fp32", "fp32", "torch", "", 200, 0.25);
  return audit;
}

}  // namespace hpqf::observe
