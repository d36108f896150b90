// `hpqf profile --ops`: some training steps of a reference model, op by op.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace hpqf::app {

struct ProfileOpsOptions {
  std::string model, data;  // data "": the model's default
  std::string precision = "bf16";
  std::vector<std::string> sensitive;
  int64_t steps = 20, warmup = 3;  // profiled, and before them
  int64_t batch_size = 0;          // 0: the model's default
  uint64_t seed = 0;
  int threads = 0;    // 0: as many as torch chooses
  int rows = 0;       // of the table; 0: all
  std::string rates;  // a file with peak rates; "": measured on this machine
  std::string trace;  // file for the trace; "": none
  bool json = false, quiet = false;
};

// Prints the table, or JSON; writes the trace. Error for options that make no sense.
int profile_ops(const ProfileOpsOptions& options);

}  // namespace hpqf::app
