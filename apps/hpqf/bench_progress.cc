#include "apps/hpqf/bench_progress.h"

#include <fmt/format.h>

#include <cstdio>

#include "apps/hpqf/progress.h"
#include "hpqf/base/clock.h"

namespace hpqf::app {
namespace {

constexpr int64_t kPeriod = 100'000'000;  // ns between two drawings
constexpr std::size_t kWidth = 79;        // of the narrowest terminal: a longer line could not be redrawn

}  // namespace

BenchProgress::BenchProgress(bool quiet, int64_t cases, int64_t rounds)
    : live_(progress_style(quiet) == ProgressStyle::live), cases_(cases), rounds_(rounds) {}

void BenchProgress::begin(const std::string& what) {
  what_ = what;
  ++case_;
  drawn_ns_ = 0;
  draw(0);
}

void BenchProgress::round(int64_t done) { draw(done); }

void BenchProgress::draw(int64_t round) {
  if (!live_ || base::steady_ns() - drawn_ns_ < kPeriod) return;
  std::string line = fmt::format("{}/{}  round {}/{}  {}", case_, cases_, round, rounds_, what_);
  line.resize(std::min(line.size(), kWidth));
  fmt::print(stderr, "\r{}\x1b[K", line);
  std::fflush(stderr);
  drawn_ = true;
  drawn_ns_ = base::steady_ns();
}

void BenchProgress::clear() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace hpqf::app
