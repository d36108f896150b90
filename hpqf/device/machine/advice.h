// From facts to advice: what on this machine costs speed or surprises, and what to do about it. A pure function.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/machine/calibration.h"
#include "hpqf/device/machine/machine.h"

namespace hpqf::device::machine {

enum class Severity : uint8_t {
  note,     // good to know
  warning,  // probably costs speed
  problem,  // certainly does, or something does not work
};
HPQF_API const char* to_string(Severity severity);

struct Finding {
  Severity severity = Severity::note;
  std::string id;    // stable: "threads-over-quota"
  std::string what;  // with the figure it rests on
  std::string why;   // what it costs
  std::string todo;  // a command where there is one
};

// What is going to run here.
struct RunSetup {
  int threads = 1;
  bool torch_has_gpu = false;  // this torch was built with CUDA or ROCm
};

// Worst first, else in the order in which they were looked for. Measured findings need a calibration.
HPQF_API std::vector<Finding> advise(const MachineFacts& facts, const RunSetup& setup,
                                     const Calibration* calibration = nullptr);

// The parts of advise(), each for its own facts.
void advise_cpu(const MachineFacts& facts, const RunSetup& setup, std::vector<Finding>& findings);
void advise_memory(const MachineFacts& facts, const RunSetup& setup, std::vector<Finding>& findings);
void advise_gpus(const MachineFacts& facts, const RunSetup& setup, std::vector<Finding>& findings);
void advise_bus(const MachineFacts& facts, std::vector<Finding>& findings);
void advise_measured(const Calibration& calibration, std::vector<Finding>& findings);

}  // namespace hpqf::device::machine
