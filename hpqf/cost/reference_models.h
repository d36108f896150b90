// Models that can be named: those of the command line, and some that everybody knows.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/cost/workload.h"

namespace hpqf::cost {

struct ReferenceOptions {
  double seq = 0;         // tokens of a sample; 0: what the model is known for
  double image_size = 0;  // likewise
  bool fused_attention = true;
  bool causal_exact = false;
};

struct ReferenceModel {
  const char* name;
  const char* summary;
  Workload (*make)(const ReferenceOptions&);
};
HPQF_API std::span<const ReferenceModel> reference_models();

// A name from the list, or a description of a decoder: "gpt:layers=24,hidden=2048,heads=16,vocab=50257,seq=2048".
// Error with the names, or with the keys.
HPQF_API Workload reference_workload(std::string_view name, const ReferenceOptions& options = {});

}  // namespace hpqf::cost
