#include "hpqf/observe/op_totals.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

namespace hpqf::observe {
namespace {

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio
  return hash ^ hash >> 32;
}

template <class Word>
uint64_t load(const char* at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Eight bytes at a time, the last ones overlapping: no call and no loop over single bytes.
uint64_t hash_of(std::string_view text) {
  const size_t n = text.size();
  const char* p = text.data();
  uint64_t hash = n;
  if (n >= 8) {
    for (size_t i = 0; i + 8 < n; i += 8) hash = mix(hash, load<uint64_t>(p + i));
    return mix(hash, load<uint64_t>(p + n - 8));
  }
  if (n >= 4) return mix(hash, load<uint32_t>(p) << 32 | load<uint32_t>(p + n - 4));
  for (size_t i = 0; i < n; ++i) hash = hash << 8 | static_cast<unsigned char>(p[i]);
  return mix(n, hash);
}

uint64_t packed(const BlockFormat& f) {
  return static_cast<uint64_t>(f.format) | static_cast<uint64_t>(f.shape) << 8 | static_cast<uint64_t>(f.scale) << 16 |
         static_cast<uint64_t>(static_cast<uint32_t>(f.block)) << 32;
}

// The rotation keeps equal halves (both operands in one format) from cancelling out.
uint64_t join(uint64_t a, uint64_t b) { return mix(std::rotl(a, 29), b); }

// The four strings are hashed apart, so that the CPU overlaps their chains of multiplications.
uint64_t hash_of(const OpEvent& e) {
  const uint64_t layer = hash_of(e.layer), op = hash_of(e.op), how = hash_of(e.implementation), why = hash_of(e.reason);
  const uint64_t requested = join(packed(e.requested_a), packed(e.requested_b));
  const uint64_t effective = join(packed(e.effective_a), packed(e.effective_b));
  const uint64_t names = join(join(layer, op), join(how, why)), formats = join(requested, effective);
  return join(join(names, formats), static_cast<uint64_t>(e.pass));
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

int64_t OpTotals::add(const OpEvent& e) {
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
  return sum.first;
}

std::map<int64_t, AuditRow> OpTotals::rows_by_serial() const {
  std::map<int64_t, AuditRow> found;
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
      found.emplace(sum.first, std::move(row));
    }
  }
  return found;
}

std::vector<AuditRow> OpTotals::rows() const {
  std::map<int64_t, AuditRow> by_serial = rows_by_serial();
  std::vector<std::pair<int64_t, AuditRow>> found(std::make_move_iterator(by_serial.begin()),
                                                  std::make_move_iterator(by_serial.end()));
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
