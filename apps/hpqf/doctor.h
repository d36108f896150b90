// hpqf doctor: what this machine is, what it was measured to do, what pays on it and what is set wrong.
#pragma once
#include <string>

namespace hpqf::app {

struct DoctorConfig {
  std::string machine;  // look at a recording in this folder instead of this machine
  std::string record;   // write a recording into this folder, and no report
  int threads = 0;      // 0: as many as torch chooses; a recorded machine: one a physical core
  bool quick = false, calibrate = true, again = false;
  bool json = false, quiet = false;
};

int doctor(const DoctorConfig& config);  // Error before anything is measured

}  // namespace hpqf::app
