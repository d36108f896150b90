// What hpqf doctor found, as text and as JSON.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/hpqf/doctor_torch.h"
#include "hpqf/device/machine/advice.h"
#include "hpqf/device/machine/calibration.h"
#include "hpqf/device/machine/machine.h"
#include "hpqf/device/machine/verdict.h"

namespace hpqf::app {

struct Diagnosis {
  device::machine::MachineFacts facts;
  std::string recorded;             // where the machine was recorded, "" for this one
  std::optional<TorchFacts> torch;  // of this process; none for a recorded machine
  int threads = 0;
  std::optional<device::machine::Calibration> calibration;
  std::string calibration_note;  // where the figures come from, or why there are none
  std::vector<device::machine::Verdict> verdicts;
  std::vector<device::machine::Finding> findings;
};

std::string report_text(const Diagnosis& diagnosis);
std::string report_json(const Diagnosis& diagnosis);  // schema "hpqf.doctor"

// The sections about the machine itself, without what was measured.
std::string machine_text(const device::machine::MachineFacts& facts);

}  // namespace hpqf::app
