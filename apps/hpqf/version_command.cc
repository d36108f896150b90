#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <CLI/CLI.hpp>

#include "apps/hpqf/commands.h"
#include "hpqf/device/device.h"

namespace hpqf::app {
namespace {

int print_version() {
  const device::CpuFeatures& cpu = device::cpu();
  fmt::print("hpqf     {}\n", HPQF_VERSION);
  fmt::print("torch    {}\n", TORCH_VERSION);
  fmt::print("cpu      {}, {} logical cores\n", cpu.brand, cpu.logical_cores);
  fmt::print("isa      {}\n", cpu.isa());
  fmt::print("threads  {} (torch's pool)\n", at::get_num_threads());
  fmt::print("native   ");
  for (const formats::FormatInfo& format : formats::all_formats()) {
    if (device::cpu_native(format.format).possible) fmt::print("{} ", format.name);
  }
  fmt::print("(formats this CPU can compute in; the engine measures before it uses one)\n");
  return 0;
}

}  // namespace

void add_version(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("version", "Versions, instruction set and threads");
  command->footer("Example:\n  hpqf version");
  command->callback([&action] { action = print_version; });
}

}  // namespace hpqf::app
