// How `hpqf bench` tells its figures: what they were measured on, numbers with the digits they deserve, JSON.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/hpqf/bench_options.h"
#include "apps/hpqf/bench_timing.h"

namespace hpqf::app {

// Schema "hpqf.bench" version 1 without its rows: benchmark, machine (cpu, isa, threads, torch), clock, rounds, load.
nlohmann::ordered_json bench_json(const std::string& benchmark, const BenchOptions& options);

// Adds ms, ratio, ratio_q1, ratio_q3 and rounds_ms to a row.
void add_times(nlohmann::ordered_json& row, const std::vector<double>& base, const std::vector<double>& times);

// The same as a line above the table.
std::string bench_header(const BenchOptions& options);

std::string three_digits(double x);             // "0.0123", "1.23", "123", "1234"
std::string ratio_text(double ratio);           // "1.23"
std::string quartiles_text(const Spread& s);    // "1.20-1.25"
std::string error_text(double relative_error);  // "0.97 %"; "2.3e-07" when that is far below a percent

// Notes and table to stdout, or the JSON there when --json is "-"; else the JSON into the file.
void publish(const BenchOptions& options, const std::string& text, const std::vector<std::string>& notes,
             nlohmann::ordered_json json);

}  // namespace hpqf::app
