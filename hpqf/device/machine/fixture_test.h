// Recorded machines of tests/machines, for the tests of this folder.
#pragma once
#include <string>

#include "hpqf/base/file.h"
#include "hpqf/device/machine/advice.h"
#include "hpqf/device/machine/machine.h"

namespace hpqf::device::machine {

inline Recording recorded(const std::string& name) {
  const std::string file = std::string(HPQF_MACHINES) + "/" + name + "/machine.json";
  return parse_recording(base::read_file(file), file);
}

inline MachineFacts facts_of(const std::string& name) {
  Recording recording = recorded(name);
  return detect(RecordedTree(std::move(recording.files)), std::move(recording.gpus));
}

inline const Finding* find(const std::vector<Finding>& findings, const std::string& id) {
  for (const Finding& f : findings)
    if (f.id == id) return &f;
  return nullptr;
}

}  // namespace hpqf::device::machine
