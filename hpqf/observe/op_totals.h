// Sums of op events by key, safe for many threads at once.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "hpqf/observe/audit.h"
#include "hpqf/observe/event.h"

namespace hpqf::observe {

class OpTotals {
 public:
  int64_t add(const OpEvent& event);   // the serial number of the event's key, the same for equal keys
  std::vector<AuditRow> rows() const;  // grouped by layer, layers and rows in the order of their first event
  std::map<int64_t, AuditRow> rows_by_serial() const;
  void clear();

 private:
  struct Key {  // owns copies of the event's strings
    std::string layer, op, implementation, reason;
    Pass pass;
    std::array<BlockFormat, 4> formats;
    uint64_t hash;
  };
  struct Probe {  // an event and its hash: looked up without building a Key
    const OpEvent& event;
    uint64_t hash;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Key& key) const { return key.hash; }
    size_t operator()(const Probe& probe) const { return probe.hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const;
    bool operator()(const Probe& a, const Key& b) const;
    bool operator()(const Key& a, const Probe& b) const { return (*this)(b, a); }
  };
  struct Sum {
    int64_t first = 0;  // serial number of the first event
    int64_t calls = 0, nanoseconds = 0;
    double flops = 0, bytes = 0;  // whole numbers below 2^53: exact in any order of addition
  };
  // The backward thread and the caller rarely meet in one of 16 stripes, so the lock is nearly always free.
  struct alignas(64) Stripe {
    mutable std::mutex mutex;
    std::unordered_map<Key, Sum, Hash, Equal> sums;
  };

  std::array<Stripe, 16> stripes_;
  std::atomic<int64_t> serial_{0};
};

}  // namespace hpqf::observe
