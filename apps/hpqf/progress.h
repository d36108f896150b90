// How far training is: one line that redraws itself on a terminal, a plain line now and then elsewhere.
#pragma once
#include <cstdint>
#include <string>

#include "hpqf/train/step.h"

namespace hpqf::app {

enum class ProgressStyle : uint8_t {
  none,
  plain,  // a line at the first and the last step and every 10 s
  live,   // one line, redrawn at most 10 times a second
};
ProgressStyle progress_style(bool quiet);  // live when stderr is a terminal

// Writes to stderr. Skipped steps leave the displayed loss as it was.
class Progress {
 public:
  Progress(ProgressStyle style, int64_t total_steps);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const train::StepResult& result);
  void note(const std::string& text);  // above the live line, e.g. a change of the plan
  void warn(const std::string& text);  // the same, also when nothing else is shown
  void finish();                       // leaves the last state on the screen

 private:
  std::string line(const train::StepResult& result) const;
  void draw();

  ProgressStyle style_;
  int64_t total_, first_ = -1, skipped_ = 0;
  int64_t begin_ns_ = 0, drawn_ns_ = 0, drawn_step_ = -1;
  double loss_ = 0, rate_ = 0;  // moving averages
  train::StepResult last_;
  bool finished_ = false;
};

// "1:23:45", "12:34"
std::string clock_text(double seconds);

}  // namespace hpqf::app
