#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "apps/hpqf/commands.h"
#include "apps/hpqf/device_views.h"

namespace hpqf::app {
namespace {

struct ChooseOptions {
  std::string format, sort = "rate", torch = TORCH_VERSION;
  std::optional<double> max_price;
  bool hourly = false, json = false;
  device::Request request;
};

int choose(const DeviceFiles& files, ChooseOptions options) {
  options.request.format = formats::parse_format(options.format);
  options.request.sort = device::parse_sort(options.sort);
  options.request.max_price = options.max_price;
  options.request.price = options.hourly ? device::PriceKind::hour : device::PriceKind::device;
  options.request.resolve.libraries["torch"] = options.torch;
  return choose_device(files.load(), options.request, options.json);
}

void add_files(CLI::App* command, const std::shared_ptr<DeviceFiles>& files) {
  command->add_option("--database", files->database, "Folder of the database instead of the one that came with hpqf");
  command
      ->add_option("--override", files->overrides,
                   "Device file, or folder of such, laid over the database: its facts win and are marked user")
      ->allow_extra_args(false);
}

void add_list(CLI::App* device, const std::shared_ptr<DeviceFiles>& files, Action& action) {
  CLI::App* command = device->add_subcommand("list", "Every device in the database");
  const auto options = std::make_shared<ListOptions>();
  command->add_option("--vendor", options->vendor, "Of this vendor alone");
  command->add_flag("--json", options->json, "As JSON");
  add_files(command, files);
  command->footer("Examples:\n  hpqf device list --vendor nvidia\n  hpqf device list --json");
  command->callback(
      [&action, files, options] { action = [files, options] { return list_devices(files->load(), *options); }; });
}

void add_show(CLI::App* device, const std::shared_ptr<DeviceFiles>& files, Action& action) {
  CLI::App* command = device->add_subcommand(
      "show", "The facts about a device with their sources, and what each format would do on it");
  const auto options = std::make_shared<ShowOptions>();
  command->add_option("ID", options->id, "Id, market name, alias, or what the driver calls the device")->required();
  command->add_flag("--all", options->all, "Also the fields that are not known, with the reason");
  command->add_option("--group", options->group, "One group of fields alone: identity, peak, memory, ...");
  command->add_option("--partition", options->partition, "One instance of a partition profile, as 1g.10gb of MIG");
  command->add_option("--power-cap", options->power_cap, "Under a power limit of so many W");
  command->add_flag("--json", options->json, "As JSON");
  add_files(command, files);
  command->footer(
      "Examples:\n"
      "  hpqf device show h100\n"
      "  hpqf device show a100 --group memory --all\n"
      "  hpqf device show a100 --partition 1g.10gb\n"
      "  hpqf device show mine --override mine.json");
  command->callback(
      [&action, files, options] { action = [files, options] { return show_device(files->load(), *options); }; });
}

void add_compare(CLI::App* device, const std::shared_ptr<DeviceFiles>& files, Action& action) {
  CLI::App* command = device->add_subcommand("compare", "Devices side by side");
  const auto options = std::make_shared<CompareOptions>();
  command->add_option("ID", options->ids, "Devices")->required()->expected(2, 16);
  command
      ->add_option("--fields", options->fields,
                   "Fields, groups or globs, with commas between: peak.bf16.dense,memory.*")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--same", options->same, "Also fields that have the same value everywhere");
  command->add_flag("--json", options->json, "As JSON");
  add_files(command, files);
  command->footer(
      "Examples:\n"
      "  hpqf device compare a100 h100\n"
      "  hpqf device compare t4 l4 --fields 'peak.*.dense,memory.bandwidth_gbs'");
  command->callback(
      [&action, files, options] { action = [files, options] { return compare_devices(files->load(), *options); }; });
}

void add_choose(CLI::App* device, const std::shared_ptr<DeviceFiles>& files, Action& action) {
  CLI::App* command = device->add_subcommand("choose", "Devices that run a format, best first, and why others do not");
  const auto options = std::make_shared<ChooseOptions>();
  command->add_option("--format", options->format, "Number format: bf16, fp8, int8, ...")->required();
  command->add_option("--min-memory", options->request.min_memory_gb, "At least so many GB of memory");
  command->add_option("--max-price", options->max_price,
                      "At most so many US dollars (list price, or with --hourly per hour)");
  command->add_flag("--hourly", options->hourly,
                    "Prices are the lowest recorded rent for an hour instead of list prices");
  command->add_option("--sort", options->sort, "rate, price, rate-per-dollar, rate-per-watt or memory")
      ->capture_default_str();
  command->add_option("--vendor", options->request.vendor, "Of this vendor alone");
  command->add_option("--kind", options->request.kind, "Of this kind alone: gpu, npu, tpu, cpu, soc, accelerator");
  command
      ->add_option("--least-gain", options->request.resolve.least_gain,
                   "How many times as fast as the wider format a narrow one must be")
      ->capture_default_str();
  command->add_option("--torch", options->torch, "Release of torch that must serve the device")->capture_default_str();
  command->add_flag("--announced", options->request.announced, "Also devices that cannot be had yet");
  command->add_flag("--json", options->json, "As JSON");
  add_files(command, files);
  command->footer(
      "Examples:\n"
      "  hpqf device choose --format int8 --min-memory 40\n"
      "  hpqf device choose --format fp8 --max-price 2500 --sort rate-per-dollar\n"
      "  hpqf device choose --format bf16 --kind cpu");
  command->callback([&action, files, options] { action = [files, options] { return choose(*files, *options); }; });
}

void add_check(CLI::App* device, const std::shared_ptr<DeviceFiles>& files, Action& action) {
  CLI::App* command = device->add_subcommand("check", "Mistakes in device files, and facts that cannot all be true");
  const auto paths = std::make_shared<std::vector<std::string>>();
  command->add_option("FILE", *paths, "Device files or folders, laid over the database; none: the database itself");
  add_files(command, files);
  command->footer(
      "Exit code 1 when anything is wrong.\n"
      "Examples:\n"
      "  hpqf device check\n"
      "  hpqf device check mine.json");
  command->callback([&action, files, paths] { action = [files, paths] { return check_devices(*files, *paths); }; });
}

}  // namespace

void add_device(CLI::App& app, Action& action) {
  CLI::App* device = app.add_subcommand("device", "What is known of devices, and which one suits a format");
  device->require_subcommand(1);
  device->footer(
      "Examples:\n"
      "  hpqf device list --vendor amd\n"
      "  hpqf device show h100\n"
      "  hpqf device compare a100 h100\n"
      "  hpqf device choose --format fp8 --min-memory 40\n"
      "  hpqf device check mine.json");
  const auto files = std::make_shared<DeviceFiles>();
  add_list(device, files, action);
  add_show(device, files, action);
  add_compare(device, files, action);
  add_choose(device, files, action);
  add_check(device, files, action);
}

}  // namespace hpqf::app
