// What the parts of `hpqf cost` print.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/hpqf/cost_config.h"
#include "hpqf/cost/figure.h"

namespace hpqf::app {

// "title\n  measured  ...\n" with texts broken at 110 columns; "" for an empty list.
std::string assumption_text(const std::string& title, const std::vector<cost::Assumption>& list);
std::string note_text(const std::string& title, const std::vector<std::string>& notes);

nlohmann::ordered_json cost_json(const std::string& kind);  // schema "hpqf.cost" version 1
nlohmann::ordered_json to_json(const std::vector<cost::Assumption>& list);
nlohmann::ordered_json to_json(const cost::Band& band);

// Prints the text, and writes the JSON where --json says; "-": the JSON instead of the text.
void publish(const CostConfig& config, const std::string& text, const nlohmann::ordered_json& json);

}  // namespace hpqf::app
