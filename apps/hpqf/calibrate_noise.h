// Watches the machine while it is being measured.
#pragma once
#include <cstdint>
#include <string>

#include "hpqf/device/machine/calibration.h"
#include "hpqf/device/machine/file_tree.h"
#include "hpqf/device/machine/machine.h"

namespace hpqf::app {

class NoiseWatch {
 public:
  NoiseWatch(const device::machine::FileTree& tree, const device::machine::MachineFacts& facts);
  device::machine::Noise result() const;  // since construction; with the reasons, `yardstick` counted in
  void yardstick(double spread) { spread_ = spread; }

 private:
  struct Counters {
    int64_t ticks = 0, stolen = 0;       // /proc/stat, all CPUs
    int64_t periods = 0, throttled = 0;  // cpu.stat of the control group that limits
  };
  Counters read() const;

  const device::machine::FileTree& tree_;
  std::string group_;  // folder of that control group, "" without a quota
  Counters before_;
  double load_ = 0, spread_ = 0;
};

}  // namespace hpqf::app
