#include "hpqf/observe/profile/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

// Two backward events of one node follow each other within this time; other work takes longer.
constexpr int64_t kSameNode = 50'000;  // ns

// More threads than this share a track: user code that starts a thread per step must not grow the table for ever.
constexpr size_t kMaxTracks = 1024;

double micros(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

// What all events of a row have in common, written once.
std::string row_text(const AuditRow& row, Pass pass) {
  const std::string layer = row.layer.empty() ? "(model)" : row.layer;
  return fmt::format(
      R"("name":{},"cat":"{}","args":{{"layer":{},"pass":"{}","requested":{},"effective":{},"implementation":{})",
      plan::json_quote(layer + " " + row.op), name(pass), plan::json_quote(layer), name(pass),
      plan::json_quote(row.requested_a + " x " + row.requested_b),
      plan::json_quote(row.effective_a + " x " + row.effective_b), plan::json_quote(row.implementation));
}

}  // namespace

Timeline::Timeline(int64_t capacity) : capacity_(capacity) {
  if (capacity < 0) throw Error(fmt::format("a timeline of {} events", capacity), "0 or more", "use 0 for none");
}

void Timeline::push(const Event& event) {
  const auto at = static_cast<size_t>(seen_ % capacity_);
  if (at < ring_.size()) {
    ring_[at] = event;
  } else {
    ring_.push_back(event);
  }
  ++seen_;
}

void Timeline::add_op(int64_t key, Pass pass, int64_t end, int64_t nanoseconds, double flops) {
  if (capacity_ == 0) return;
  const std::lock_guard lock(mutex_);
  int32_t track = 1;
  if (const auto it = tracks_.find(std::this_thread::get_id()); it != tracks_.end()) {
    track = it->second;
  } else if (tracks_.size() < kMaxTracks) {
    track = static_cast<int32_t>(tracks_.size()) + 1;
    tracks_.emplace(std::this_thread::get_id(), track);
  }
  if (pass == Pass::wgrad && seen_ > 0) {
    Event& before = ring_[static_cast<size_t>((seen_ - 1) % capacity_)];
    const int64_t before_end = before.begin + before.nanoseconds;
    if (before.pass == Pass::dgrad && before.track == track && before.nanoseconds == nanoseconds &&
        end - before_end < kSameNode)
      before.begin -= nanoseconds;
  }
  push({key, end - nanoseconds, nanoseconds, flops, track, pass});
}

void Timeline::add_step(int64_t number, int64_t begin, int64_t end) {
  if (capacity_ == 0) return;
  const std::lock_guard lock(mutex_);
  push({number, begin, end - begin, 0, 0, Pass::forward});
}

int64_t Timeline::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

int64_t Timeline::kept() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(ring_.size());
}

void Timeline::clear() {
  const std::lock_guard lock(mutex_);
  ring_.clear();
  tracks_.clear();
  seen_ = 0;
}

std::string Timeline::to_json(const std::map<int64_t, AuditRow>& rows, int64_t origin, int64_t max_bytes) const {
  constexpr int64_t kFrame = 4096;  // bytes for the metadata around the events
  if (max_bytes < kFrame)
    throw Error(fmt::format("a trace of at most {} bytes", max_bytes), "4096 bytes or more", "64 MiB is the default");
  const std::lock_guard lock(mutex_);
  std::map<int64_t, std::string> texts;
  std::vector<std::string> lines;  // newest first
  int64_t bytes = kFrame;
  const auto size = static_cast<int64_t>(ring_.size());
  for (int64_t back = 1; back <= size; ++back) {
    const Event& e = ring_[static_cast<size_t>((seen_ - back) % capacity_)];
    std::string line;
    const std::string when = fmt::format(R"("ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f})", e.track,
                                         micros(e.begin - origin), micros(e.nanoseconds));
    if (e.track == 0) {
      line = fmt::format(R"({{"name":"step {}","cat":"step",{}}})", e.key, when);
    } else {
      const auto row = rows.find(e.key);
      if (row == rows.end()) continue;  // cleared since
      std::string& text = texts[e.key];
      if (text.empty()) text = row_text(row->second, e.pass);
      line = fmt::format(R"({{{},"flops":{}}},{}}})", text, e.flops, when);
    }
    if (bytes + static_cast<int64_t>(line.size()) + 2 > max_bytes) break;
    bytes += static_cast<int64_t>(line.size()) + 2;
    lines.push_back(std::move(line));
  }
  const auto written = static_cast<int64_t>(lines.size());
  std::string out = fmt::format(
      R"({{"displayTimeUnit":"ms","otherData":{{"schema":"hpqf.trace","version":1,"events":{},"written":{},)"
      R"("left_out":{},"ring":{},"max_bytes":{},"note":{}}},"traceEvents":[)",
      seen_, written, seen_ - written, capacity_, max_bytes,
      plan::json_quote(written == seen_ ? "complete"
                                        : "the newest events only: a ring of fixed size, and a limit on the file"));
  out.reserve(static_cast<size_t>(bytes));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line != lines.rbegin()) out += ",\n";
    out += *line;
  }
  return out + "]}\n";
}

}  // namespace hpqf::observe
