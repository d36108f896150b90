// How fast a problem runs in a format on this machine: measured once, kept in a file by machine.
#pragma once
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/engine/problem_shape.h"
#include "hpqf/formats/block_format.h"

namespace hpqf::engine {

// One forward and backward (input and weight gradient) of the layer alone, through the engine as a plan would run it;
// the weights change between the runs, as an optimizer changes them.
struct Rate {
  double seconds = 0;   // best of several runs, interleaved with fp32's
  double ratio = 0;     // fp32's time over this
  std::string refused;  // why it would only be emulated, and was not timed; else ""
};

// Shapes fall into classes: rows are cut to a power of two from 16 to 1024, images to one from 1 to 16, beyond which
// rates no longer move.
HPQF_API ProblemShape shape_class(const ProblemShape& shape);
HPQF_API std::string to_string(const ProblemShape& shape);  // "linear 1024x512x2048"

// From memory, from the file, or measured now (some 100 ms) with the threads torch has. The file lies in
// $XDG_CACHE_HOME/hpqf or ~/.cache/hpqf and is keyed by CPU, instruction sets, threads and torch's version; one that
// cannot be read or written only costs the measurement.
HPQF_API Rate rate(const ProblemShape& shape, const BlockFormat& format);

}  // namespace hpqf::engine
