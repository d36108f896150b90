#include "hpqf/device/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "hpqf/device/machine/cpu.h"
#include "hpqf/device/numbers.h"

namespace hpqf::device {
namespace {

// Which arithmetic of a device a format of HPQF would use: int12 lives in 16-bit lanes, int7 in 8-bit lanes.
const char* peak_name(Format format) {
  switch (format) {
    case Format::int12:
      return "int16";
    case Format::int7:
      return "int8";
    default:
      return formats::name(format);
  }
}

std::vector<const char*> peak_names(Format format, const DeviceFacts& device) {
  // An fp32 product may run on matrix units that keep all bits (CDNA), a product in fp16 on the vectors of a CPU.
  if (format == Format::fp32) return {"fp32_tensor", "fp32"};
  if (format == Format::fp16 && device.text("identity.kind") == "cpu") return {"fp16", "fp16_vector"};
  return {peak_name(format)};
}

std::optional<Rate> calibrated_rate(Format format, const DeviceFacts& device, const ResolveOptions& options) {
  if (const auto it = options.calibrated.find(format); it != options.calibrated.end())
    return Rate{it->second, RateSource::calibrated, "measured on this device"};
  const Fact* fact = device.find(fmt::format("calibrated.best.{}", peak_name(format)));
  if (fact && fact->user && fact->value.kind == Value::Kind::number)
    return Rate{fact->value.number, RateSource::calibrated, "measured on this device: " + fact->source->title};
  return std::nullopt;
}

std::optional<Rate> measured_rate(Format format, const DeviceFacts& device) {
  const Fact* best = device.find(fmt::format("calibrated.best.{}", peak_name(format)));
  for (const int size : {1024, 2048, 4096, 8192, 16384}) {
    const Fact* fact = device.find(fmt::format("calibrated.gemm.{}.{}", peak_name(format), size));
    if (fact && (!best || fact->value.number > best->value.number)) best = fact;
  }
  if (!best) return std::nullopt;
  return Rate{best->value.number, RateSource::measured, "measured on such a device: " + best->source->title};
}

std::optional<Rate> quoted_rate(Format format, const DeviceFacts& device, const AchievableFactors& factors) {
  for (const char* name : peak_names(format, device)) {
    const auto peak = device.number(peak_key(name));
    if (!peak || *peak <= 0) continue;
    const AchievableFactor factor = factors.factor(device, name);
    return Rate{*peak * factor.value, RateSource::quoted,
                fmt::format("{:.6g} quoted x {:.2f} ({})", *peak, factor.value, factor.basis)};
  }
  return std::nullopt;
}

std::optional<Rate> rate_from(RateSource source, Format format, const DeviceFacts& device,
                              const AchievableFactors& factors, const ResolveOptions& options) {
  switch (source) {
    case RateSource::calibrated:
      return calibrated_rate(format, device, options);
    case RateSource::measured:
      return measured_rate(format, device);
    case RateSource::quoted:
      return quoted_rate(format, device, factors);
    case RateSource::none:
      break;
  }
  return std::nullopt;
}

constexpr std::array kSources = {RateSource::calibrated, RateSource::measured, RateSource::quoted};

bool is_fp8(Format format) { return format == Format::fp8_e4m3 || format == Format::fp8_e5m2; }

enum class Has : uint8_t { no, yes, unknown };

struct Arithmetic {
  Has has = Has::unknown;
  std::string reason;  // why not
};

Arithmetic arithmetic(Format format, const DeviceFacts& device) {
  if (format == Format::fp32) return {Has::yes, ""};
  if (const auto features = x86_features(device)) {
    NativeAnswer native = cpu_native(format, *features);
    return {native.possible ? Has::yes : Has::no, std::move(native.reason)};
  }
  const char* name = peak_name(format);
  const auto support = device.flag(fmt::format("support.{}.matmul", name));
  if (support == false || device.flag(fmt::format("peak.{}.emulated", name)) == true)
    return {Has::no, fmt::format("{} has no {} arithmetic", device.name(), name)};
  // Formats of one name are not one format: FNUZ reaches 240 where OCP reaches 448, and its codes mean other values.
  const char* largest_key = format == Format::fp8_e5m2 ? "support.fp8.e5m2_max" : "support.fp8.e4m3_max";
  const auto largest = is_fp8(format) ? device.number(largest_key) : std::nullopt;
  if (largest && *largest != static_cast<double>(formats::info(format).largest))
    return {Has::no, fmt::format("the {} of {} reaches {}, that of HPQF {} (OCP): another format", name, device.name(),
                                 *largest, formats::info(format).largest)};
  // A peak of a matrix product is a statement that there is one.
  if (support == true || device.number(peak_key(name)).value_or(0) > 0) return {Has::yes, ""};
  return {Has::unknown, fmt::format("whether {} computes in {} is not known; nothing is assumed", device.name(), name)};
}

// "2.13" of "2.13.1+cu130".
std::string release(std::string_view version) {
  const size_t first = version.find('.');
  return std::string(first == std::string_view::npos ? version : version.substr(0, version.find('.', first + 1)));
}

// "" when the software can use the format, as far as versions and probes are known.
std::string software_refusal(Format format, const DeviceFacts& device, const ResolveOptions& options) {
  auto too_old = [&](const char* library, const char* key) -> std::string {
    const auto needs = device.text(key);
    const auto has = options.libraries.find(library);
    if (!needs || has == options.libraries.end() || !older(has->second, *needs)) return "";
    return fmt::format("{} {} is too old: {} needs {}", library, has->second, device.name(), *needs);
  };
  if (std::string old = too_old("torch", "software.min_torch"); !old.empty()) return old;
  if (const auto last = device.text("software.max_torch"); last && options.libraries.count("torch")) {
    const std::string& torch = options.libraries.at("torch");
    // A last release of "2.7" holds for 2.7.1 too.
    if (older(*last, release(torch)))
      return fmt::format("torch {} carries no kernels for {} any more; {} was the last", torch, device.name(), *last);
  }
  const bool cpu = device.text("identity.kind") == "cpu";
  if (is_fp8(format)) {
    for (const auto& [library, key] : {std::pair{"cublaslt", "support.library.cublaslt_fp8"},
                                       std::pair{"hipblaslt", "support.library.hipblaslt_fp8"}}) {
      if (std::string old = too_old(library, key); !old.empty()) return old;
    }
    if (device.flag("support.torch.fp8") == false) return fmt::format("torch has no fp8 product for {}", device.name());
  }
  if (format == Format::bf16 && device.flag("support.torch.bf16") == false)
    return fmt::format("torch has no native bf16 product for {}", device.name());
  // On CPUs integers run in HPQF's own kernels.
  if (formats::info(format).is_integer && !cpu && device.flag("support.torch.int8") == false)
    return fmt::format("torch has no int8 product for {}", device.name());
  return "";
}

bool usable(Format format, const DeviceFacts& device, const ResolveOptions& options) {
  return arithmetic(format, device).has == Has::yes && software_refusal(format, device, options).empty();
}

bool sixteen_bits_or_more(Format format) {
  return format == Format::fp32 || format == Format::tf32 || format == Format::fp16 || format == Format::bf16;
}

// Both rates from the strongest kind of source that has both; a measured rate against a quoted one would compare two
// questions.
std::optional<double> gain_over(Format baseline, Format format, const DeviceFacts& device,
                                const AchievableFactors& factors, const ResolveOptions& options) {
  for (const RateSource source : kSources) {
    const auto rate = rate_from(source, format, device, factors, options),
               base = rate_from(source, baseline, device, factors, options);
    if (rate && base && base->tera > 0) return rate->tera / base->tera;
  }
  return std::nullopt;
}

Format baseline_for(Format format, const DeviceFacts& device, const AchievableFactors& factors,
                    const ResolveOptions& options) {
  if (sixteen_bits_or_more(format)) return Format::fp32;
  Format best = Format::fp32;
  double most = 0;
  for (const Format wide : {Format::bf16, Format::fp16}) {
    if (!usable(wide, device, options)) continue;
    const auto rate = expected_rate(wide, device, factors, options);
    if (rate && rate->tera > most) {
      most = rate->tera;
      best = wide;
    }
  }
  return best;
}

}  // namespace

const char* name(Kind kind) {
  switch (kind) {
    case Kind::native:
      return "native";
    case Kind::emulated:
      return "emulated";
    case Kind::refused:
      break;
  }
  return "refused";
}

const char* name(RateSource source) {
  switch (source) {
    case RateSource::calibrated:
      return "calibrated";
    case RateSource::measured:
      return "measured";
    case RateSource::quoted:
      return "quoted";
    case RateSource::none:
      break;
  }
  return "unknown";
}

std::optional<CpuFeatures> x86_features(const DeviceFacts& device) {
  const std::vector<std::string> isa = device.texts("support.cpu_isa");
  const bool avx2 = std::find(isa.begin(), isa.end(), "avx2") != isa.end();
  if (device.text("identity.kind") != "cpu" || !avx2) return std::nullopt;
  CpuFeatures f = machine::features_from_flags(isa);
  f.brand = device.name();
  return f;
}

bool older(std::string_view has, std::string_view needs) {
  auto next = [](std::string_view& text) {
    while (!text.empty() && (text.front() < '0' || text.front() > '9')) text.remove_prefix(1);
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return number;
  };
  while (!has.empty() || !needs.empty()) {
    const int a = next(has), b = next(needs);
    if (a != b) return a < b;
  }
  return false;
}

std::optional<Rate> expected_rate(Format format, const DeviceFacts& device, const AchievableFactors& factors,
                                  const ResolveOptions& options) {
  for (const RateSource source : kSources) {
    if (auto rate = rate_from(source, format, device, factors, options)) return rate;
  }
  return std::nullopt;
}

Resolution resolve(Format format, const DeviceFacts& device, const AchievableFactors& factors,
                   const ResolveOptions& options) {
  Resolution out;
  out.format = format;
  const Arithmetic has = arithmetic(format, device);
  if (has.has == Has::no) {
    out.kind = Kind::emulated;
    out.reason = has.reason + ": operands are rounded and multiplied in fp32";
    out.rate = expected_rate(Format::fp32, device, factors, options);
    return out;
  }
  out.rate = expected_rate(format, device, factors, options);
  out.reason = has.reason;
  if (has.has == Has::unknown) return out;
  out.reason = software_refusal(format, device, options);
  if (!out.reason.empty()) return out;
  if (format == Format::fp32) {
    out.kind = Kind::native;
    out.reason = "every device computes in fp32";
    return out;
  }
  out.baseline = baseline_for(format, device, factors, options);
  out.gain = gain_over(out.baseline, format, device, factors, options);
  const char* baseline = formats::name(out.baseline);
  if (!out.gain) {
    out.reason =
        fmt::format("its gain over {} is not known: no two rates to compare; calibrate on the device", baseline);
  } else if (*out.gain < options.least_gain) {
    out.reason = fmt::format("{:.2f} times the rate of {}, under the {} that pay for conversions", *out.gain, baseline,
                             options.least_gain);
  } else {
    out.kind = Kind::native;
    out.reason = fmt::format("{:.2f} times the rate of {}", *out.gain, baseline);
  }
  return out;
}

Resolution resolve(Format format, const CpuFeatures& cpu, const ResolveOptions& options) {
  Resolution out;
  out.format = format;
  auto rate = [&](Format of) -> std::optional<Rate> {
    const auto it = options.calibrated.find(of);
    if (it == options.calibrated.end()) return std::nullopt;
    return Rate{it->second, RateSource::calibrated, "measured on this machine"};
  };
  const NativeAnswer native = cpu_native(format, cpu);
  if (!native.possible) {
    out.kind = Kind::emulated;
    out.reason = native.reason + ": operands are rounded and multiplied in fp32";
    out.rate = rate(Format::fp32);
    return out;
  }
  out.kind = Kind::native;
  out.rate = rate(format);
  if (format == Format::fp32) {
    out.reason = "every device computes in fp32";
    return out;
  }
  const auto base = rate(Format::fp32);
  if (!out.rate || !base || base->tera <= 0) {
    out.reason = "this CPU has the instructions; the engine measures before it uses them";
    return out;
  }
  out.gain = out.rate->tera / base->tera;
  out.reason = fmt::format("{:.2f} times the rate of fp32", *out.gain);
  if (*out.gain < options.least_gain) {
    out.kind = Kind::refused;
    out.reason += fmt::format(", under the {} that pay for conversions", options.least_gain);
  }
  return out;
}

}  // namespace hpqf::device
