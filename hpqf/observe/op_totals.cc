#include "hpqf/observe/op_totals.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace hpqf::observe {
namespace {

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio
  return hash ^ hash >> 32;
}

// Eight bytes at a time; the length goes in first, so that ("ab", "c") and ("a", "bc") differ.
uint64_t mix(uint64_t hash, std::string_view text) {
  hash = mix(hash, text.size());
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, text.data(), 8);
    hash = mix(hash, word);
  }
  uint64_t tail = 0;
  if (!text.empty()) std::memcpy(&tail, text.data(), text.size());
  return mix(hash, tail);
}

uint64_t packed(const BlockFormat& f) {
  return static_cast<uint64_t>(f.format) | static_cast<uint64_t>(f.shape) << 8 | static_cast<uint64_t>(f.scale) << 16 |
         static_cast<uint64_t>(static_cast<uint32_t>(f.block)) << 32;
}

uint64_t hash_of(const OpEvent& e) {
  uint64_t hash = mix(static_cast<uint64_t>(e.pass) + 1, e.layer);
  hash = mix(hash, e.op);
  hash = mix(hash, e.implementation);
  hash = mix(hash, e.reason);
  for (const BlockFormat* format : {&e.requested_a, &e.requested_b, &e.effective_a, &e.effective_b})
    hash = mix(hash, packed(*format));
  return hash;
}

}  // namespace

bool OpTotals::Equal::operator()(const Key& a, const Key& b) const {
  return a.hash == b.hash && a.pass == b.pass && a.formats == b.formats && a.layer == b.layer && a.op == b.op &&
         a.implementation == b.implementation && a.reason == b.reason;
}

bool OpTotals::Equal::operator()(const Probe& a, const Key& b) const {
  const OpEvent& e = a.event;
  return a.hash == b.hash && e.pass == b.pass && e.requested_a == b.formats[0] && e.requested_b == b.formats[1] &&
         e.effective_a == b.formats[2] && e.effective_b == b.formats[3] && e.layer == b.layer && e.op == b.op &&
         e.implementation == b.implementation && e.reason == b.reason;
}

void OpTotals::add(const OpEvent& e) {
  const Probe probe{e, hash_of(e)};
  Stripe& stripe = stripes_[probe.hash >> 60];
  const std::lock_guard lock(stripe.mutex);
  auto it = stripe.sums.find(probe);
  if (it == stripe.sums.end()) {
    Key key{std::string(e.layer),
            std::string(e.op),
            std::string(e.implementation),
            std::string(e.reason),
            e.pass,
            {e.requested_a, e.requested_b, e.effective_a, e.effective_b},
            probe.hash};
    it = stripe.sums.emplace(std::move(key), Sum{}).first;
    it->second.first = serial_.fetch_add(1, std::memory_order_relaxed);
  }
  Sum& sum = it->second;
  ++sum.calls;
  sum.nanoseconds += e.nanoseconds;
  sum.flops += e.flops;
  sum.bytes += e.bytes;
}

std::vector<AuditRow> OpTotals::rows() const {
  std::vector<std::pair<int64_t, AuditRow>> found;
  for (const Stripe& stripe : stripes_) {
    const std::lock_guard lock(stripe.mutex);
    for (const auto& [key, sum] : stripe.sums) {
      AuditRow row{key.layer,
                   key.op,
                   key.pass,
                   formats::to_string(key.formats[0]),
                   formats::to_string(key.formats[1]),
                   formats::to_string(key.formats[2]),
                   formats::to_string(key.formats[3]),
                   key.implementation,
                   key.reason,
                   sum.calls,
                   sum.flops,
                   sum.bytes,
                   static_cast<double>(sum.nanoseconds) * 1e-9};
      found.emplace_back(sum.first, std::move(row));
    }
  }
  std::map<std::string, int64_t> layer_first;
  for (const auto& [first, row] : found) {
    auto [it, is_new] = layer_first.emplace(row.layer, first);
    if (!is_new) it->second = std::min(it->second, first);
  }
  std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    const int64_t la = layer_first[a.second.layer], lb = layer_first[b.second.layer];
    return la != lb ? la < lb : a.first < b.first;
  });
  std::vector<AuditRow> rows;
  for (auto& entry : found) rows.push_back(std::move(entry.second));
  return rows;
}

void OpTotals::clear() {
  for (Stripe& stripe : stripes_) {
    const std::lock_guard lock(stripe.mutex);
    stripe.sums.clear();
  }
}

}  // namespace hpqf::observe
