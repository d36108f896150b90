// What happens when a format is asked for on a device: it runs natively, it is emulated, or it is refused, and why.
// Pure functions on facts.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/device/achievable.h"
#include "hpqf/device/device.h"
#include "hpqf/device/facts.h"
#include "hpqf/formats/format.h"

namespace hpqf::device {

enum class Kind : uint8_t {
  native,    // the device multiplies in the format, and that is faster
  emulated,  // no arithmetic in it: operands are rounded and multiplied in fp32, the numbers without the speed
  refused,   // not worth it, not supported by the software, or not known
};
HPQF_API const char* name(Kind kind);

enum class RateSource : uint8_t {
  none,
  calibrated,  // measured on this very device
  measured,    // measured on such a device by somebody else
  quoted,      // the sheet's peak x what is reached of such peaks
};
HPQF_API const char* name(RateSource source);

struct Rate {
  double tera = 0;  // 10^12 operations a second (a multiply-add is two)
  RateSource source = RateSource::none;
  std::string basis;  // "312 quoted x 0.87 (median of ...)"
};

struct Resolution {
  Format format = Format::fp32;
  Kind kind = Kind::refused;
  std::string reason;
  std::optional<Rate> rate;    // expected of a large matrix product; of fp32 when emulated; nullopt: unknown
  std::optional<double> gain;  // over `baseline`, both rates from the same kind of source
  Format baseline = Format::fp32;
};

struct ResolveOptions {
  // A format must be this much faster than the wider one it replaces: below, what conversions and scales cost eats
  // the gain.
  double least_gain = 1.15;
  std::map<Format, double> calibrated;           // 10^12 operations a second, measured on this device
  std::map<std::string, std::string> libraries;  // versions here: "cublaslt", "hipblaslt", "torch"; others unchecked
};

// The instruction sets of an x86 CPU of the database (support.cpu_isa), as cpu() detects them on a machine; nullopt for
// other devices and where they are not known.
HPQF_API std::optional<CpuFeatures> x86_features(const DeviceFacts& device);

// A device of the database. Whether an x86 CPU computes in a format is answered by cpu_native(), as on the machine
// itself; of other devices their support flags say so. fp16 and bf16 are compared with fp32; what is narrower with the
// faster of bf16 and fp16 where the device has one, else with fp32.
HPQF_API Resolution resolve(Format format, const DeviceFacts& device, const AchievableFactors& factors,
                            const ResolveOptions& options = {});

// A CPU known by its instruction sets: the answer of cpu_native(), with rates only where they were measured here.
HPQF_API Resolution resolve(Format format, const CpuFeatures& cpu, const ResolveOptions& options = {});

// The best rate known, in the order of RateSource; nullopt: unknown.
HPQF_API std::optional<Rate> expected_rate(Format format, const DeviceFacts& device, const AchievableFactors& factors,
                                           const ResolveOptions& options = {});

// Is version `has` older than `needs`? Compared number by number: "12.10" is newer than "12.8".
HPQF_API bool older(std::string_view has, std::string_view needs);

}  // namespace hpqf::device
