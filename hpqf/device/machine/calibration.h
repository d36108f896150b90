// What a machine was measured to do, as a value: kept in a file, and thrown away when it no longer fits.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::device::machine {

// Of several runs; quartiles tell how far they lie apart.
struct Measured {
  double median = 0, q1 = 0, q3 = 0;
  int runs = 0;
};

// One product of a linear layer, x [rows, in] * w [out, in]^T, end to end from fp32 operands.
struct ProductFigure {
  std::string format, shape;  // "int8", "512x512x512": rows x inputs x outputs
  std::string implementation;
  Measured gflops;       // 1e9 floating-point (or integer) operations a second
  Measured ratio;        // fp32's time over this, round by round: above 1 is faster
  std::string left_out;  // why it was not timed; else ""
};

// Forward and backward of a linear layer through the engine, as a plan would run it: what `auto` decides by.
struct LayerFigure {
  std::string format, shape;
  double seconds = 0, ratio = 0;  // best of the runs; fp32's time over this
  std::string left_out;           // why it would only be emulated
};

struct BandwidthFigure {
  std::string what;     // "copy", "quantise int8", "AdamW", "loopback TCP"
  std::string counted;  // which bytes
  Measured gigabytes;   // 1e9 bytes a second
};

// Whether the figures can be trusted.
struct Noise {
  double spread = 0;                 // interquartile range over median of equal fp32 products
  double stolen = 0;                 // share of CPU time that the hypervisor gave to others
  double throttled = 0;              // share of scheduling periods in which the CPU quota ran out
  double others = 0;                 // load of the machine before, in runnable tasks per CPU
  std::vector<std::string> reasons;  // why the machine counts as noisy; none: quiet
};

// What a calibration holds for. Another machine, thread count or torch gives other figures.
struct HPQF_API CalibrationIdentity {
  std::string cpu, isa, torch;
  int threads = 0, cpus = 0;
  double quota = 0;  // 0: none
  bool operator==(const CalibrationIdentity&) const = default;
  std::string difference(const CalibrationIdentity& other) const;  // in words; "" when equal
};

struct Calibration {
  CalibrationIdentity identity;
  int64_t unix_seconds = 0;  // when
  double took_seconds = 0;
  bool quick = false;
  std::vector<ProductFigure> products;
  std::vector<LayerFigure> layers;
  std::vector<BandwidthFigure> bandwidths;
  Noise noise;
  std::vector<std::string> left_out;  // for which the time was too short
};

HPQF_API std::string to_json(const Calibration& calibration);

// Interquartile range over median above 10 %, more than 2 % of the time stolen or throttled, or a load of more than 0.5
// tasks per CPU before the start: the reasons in words.
HPQF_API std::vector<std::string> noise_reasons(const Noise& noise);

// The file of calibrations: one for each identity, so that several machines may share a home. Schema
// "hpqf.calibration".
struct CalibrationLookup {
  std::optional<Calibration> calibration;
  std::string why_not;  // in words when there is none: "no calibration yet", "damaged: ...", "31 days old", ...
};
// `text` is the file's content, "" when there is none. A quick one is not taken when a full one is asked for.
HPQF_API CalibrationLookup find_calibration(std::string_view text, const CalibrationIdentity& identity, bool quick,
                                            int64_t now_unix_seconds);
// The new content of the file; of a damaged one nothing is kept.
HPQF_API std::string add_calibration(std::string_view text, const Calibration& calibration);

inline constexpr int kCalibrationDays =
    30;  // older figures are measured again: kernels, firmware and neighbours change

}  // namespace hpqf::device::machine
