// How the torch in this process was built and what it runs with.
#pragma once
#include <string>

namespace hpqf::app {

struct TorchFacts {
  std::string version, backend;     // "2.13.0", "OpenMP"
  std::string mkl, onednn, openmp;  // versions, "" where it was built without
  std::string capability;           // instruction sets of torch's own loops: "AVX2"
  int threads = 0, interop_threads = 0;
  bool cuda = false, rocm = false;  // built with
};
TorchFacts torch_facts();

}  // namespace hpqf::app
