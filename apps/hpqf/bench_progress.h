// Where a benchmark is: one line that redraws itself when stderr is a terminal, nothing elsewhere.
#pragma once
#include <cstdint>
#include <string>

namespace hpqf::app {

class BenchProgress {
 public:
  BenchProgress(bool quiet, int64_t cases, int64_t rounds);
  ~BenchProgress() { clear(); }
  BenchProgress(const BenchProgress&) = delete;
  BenchProgress& operator=(const BenchProgress&) = delete;

  void begin(const std::string& what);  // the next case
  void round(int64_t done);

 private:
  void draw(int64_t round);
  void clear();

  bool live_, drawn_ = false;
  int64_t cases_, rounds_, case_ = 0, drawn_ns_ = 0;
  std::string what_;
};

}  // namespace hpqf::app
