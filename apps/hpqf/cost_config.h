// Everything `hpqf cost` can be told.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hpqf::app {

struct CostConfig {
  // What is looked at: a model, a run, or a worked example.
  std::string model, run, example;

  std::vector<std::string> precisions, plans, devices;
  std::string against;  // model: the precision to compare with; run: another run
  int64_t gpus = 1, batch = 32;
  std::string optimizer = "adamw";
  double samples = 0, epochs = 0, tokens = 0, steps = 0, dataset = 0;
  double seq = 0, image_size = 0;
  bool unfused_attention = false, causal_exact = false;
  double overlap = 0, link_gbs = 0;
  std::optional<double> left_out;

  double price = 0;
  std::string currency = "USD", prices;
  bool spot = false, reserved = false;
  double conversion_hours = 40, wage = 100, profiling_hours = 0, validation_hours = 0, rerun_risk = 0;
  double utilisation = 1, pue = 1.2, host_factor = 1.26;
  std::optional<double> co2;
  std::optional<double> target;
  std::string database, json;
};

void add_options(CLI::App& command, CostConfig& config);
void check(const CostConfig& config);  // Error naming the option

int cost_of_model(const CostConfig& config);
int cost_of_run(const CostConfig& config);
int cost_of_example(const CostConfig& config);

}  // namespace hpqf::app
