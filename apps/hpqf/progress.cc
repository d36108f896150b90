#include "apps/hpqf/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "hpqf/base/clock.h"

namespace hpqf::app {
namespace {

constexpr int64_t kLivePeriod = 100'000'000, kPlainPeriod = 10'000'000'000;  // ns
constexpr double kAveraged = 0.05;  // weight of the newest step in the displayed loss and rate: about 20 steps

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string bar(double fraction) {
  constexpr int kCells = 10;
  const int full = static_cast<int>(fraction * kCells);
  return fmt::format("[{}{}]", std::string(full, '#'), std::string(kCells - full, '.'));
}

}  // namespace

std::string clock_text(double seconds) {
  const int64_t s = std::llround(seconds);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

ProgressStyle progress_style(bool quiet) {
  if (quiet) return ProgressStyle::none;
  return isatty(STDERR_FILENO) ? ProgressStyle::live : ProgressStyle::plain;
}

Progress::Progress(ProgressStyle style, int64_t total_steps)
    : style_(style), total_(total_steps), begin_ns_(base::steady_ns()) {}

std::string Progress::line(const train::StepResult& r) const {
  const double elapsed = static_cast<double>(base::steady_ns() - begin_ns_) * 1e-9;
  const double per_step = elapsed / static_cast<double>(r.step - first_ + 1);
  std::string text = fmt::format("step {}/{}  loss {:.4f}  {:.0f} samples/s", r.step, total_, loss_, rate_);
  text += fmt::format("  scale {:g}  skipped {}", r.loss_scale, skipped_);
  text += fmt::format("  ETA {}", clock_text(per_step * static_cast<double>(std::max<int64_t>(total_ - r.step, 0))));
  if (style_ == ProgressStyle::plain) return text;
  // What does not fit on one line cannot be redrawn: the bar goes first, then the end.
  const std::size_t room = terminal_width() - 1;
  const double done = total_ > 0 ? std::min(1.0, static_cast<double>(r.step) / static_cast<double>(total_)) : 0;
  if (const std::string with_bar = bar(done) + " " + text; with_bar.size() <= room) return with_bar;
  text.resize(std::min(text.size(), room));
  return text;
}

void Progress::step(const train::StepResult& r) {
  if (style_ == ProgressStyle::none) return;
  const bool first = first_ < 0;
  if (first) first_ = r.step;
  if (!r.applied) ++skipped_;
  const double weight = first ? 1 : kAveraged;
  if (std::isfinite(r.loss)) loss_ = loss_ == 0 ? r.loss : loss_ + weight * (r.loss - loss_);
  rate_ += weight * (r.samples_per_second() - rate_);
  const int64_t period = style_ == ProgressStyle::live ? kLivePeriod : kPlainPeriod;
  const bool due = first || base::steady_ns() - drawn_ns_ >= period;
  last_ = r;
  if (due || r.step == total_) draw();
}

void Progress::draw() {
  drawn_ns_ = base::steady_ns();
  drawn_step_ = last_.step;
  if (style_ == ProgressStyle::live) {
    fmt::print(stderr, "\r{}\x1b[K", line(last_));
  } else {
    fmt::print(stderr, "{}\n", line(last_));
  }
  std::fflush(stderr);
}

void Progress::note(const std::string& text) {
  if (style_ != ProgressStyle::none) warn(text);
}

void Progress::warn(const std::string& text) {
  fmt::print(stderr, "{}{}\n", style_ == ProgressStyle::live ? "\r\x1b[K" : "", text);
  drawn_ns_ = 0;
}

void Progress::finish() {
  if (style_ == ProgressStyle::none || first_ < 0 || finished_) return;
  finished_ = true;
  if (drawn_step_ != last_.step) draw();
  if (style_ == ProgressStyle::live) fmt::print(stderr, "\n");
}

}  // namespace hpqf::app
