#include "hpqf/engine/weight_cache.h"

#include <c10/core/StorageImpl.h>

#include <mutex>
#include <unordered_map>
#include <vector>

#include "hpqf/engine/rounding.h"
#include "hpqf/kernels/quantize.h"

namespace hpqf::engine {
namespace {

struct Key {
  const void* storage;
  int64_t offset, rows, stride0, axis;
  uint32_t format;
  CopyUse use;
  int exponent;
  bool operator==(const Key&) const = default;
};
struct Hash {
  size_t operator()(const Key& k) const {
    size_t h = std::hash<const void*>()(k.storage);
    for (uint64_t v : {uint64_t(k.offset), uint64_t(k.rows), uint64_t(k.stride0), uint64_t(k.axis),
                       uint64_t(k.format) << 8 | uint64_t(k.use), uint64_t(k.exponent)})
      h = (h ^ v) * 0x9E3779B97F4A7C15ull;
    return h;
  }
};
struct Entry {
  c10::weak_intrusive_ptr<c10::StorageImpl> owner;
  uint64_t version, content;
  std::vector<int64_t> sizes;  // of the weight
  at::Tensor copy;
};

std::mutex g_mutex;
std::unordered_map<Key, Entry, Hash> g_cache;
WeightCacheStats g_stats;

uint32_t code(const BlockFormat& f) {
  return uint32_t(f.format) | uint32_t(f.shape) << 8 | uint32_t(f.scale) << 12 | uint32_t(f.block) << 16;
}

}  // namespace

bool cacheable(const at::Tensor& w) {
  return rounds_in_kernel(w) && w.is_non_overlapping_and_dense() && w.numel() > 0 && !w.is_inference();
}

at::Tensor weight_copy(const at::Tensor& w, CopyUse use, const BlockFormat& format, int64_t axis,
                       c10::function_ref<at::Tensor()> make, int exponent) {
  auto storage = w.storage();
  const Key key{storage.unsafeGetStorageImpl(),
                w.storage_offset(),
                w.dim() > 0 ? w.size(0) : 1,
                w.dim() > 0 ? w.stride(0) : 1,
                axis,
                code(format),
                use,
                exponent};
  const uint64_t version = w._version();
  // `p.data.mul_(...)` writes the same bytes under another version counter, so the version alone would go stale.
  // Reading the weight once (at read bandwidth) costs about a third of rounding it anew.
  const uint64_t content = kernels::fingerprint(w.const_data_ptr<float>(), w.numel() * int64_t(sizeof(float)));
  {
    std::lock_guard lock(g_mutex);
    auto it = g_cache.find(key);
    if (it != g_cache.end() && !it->second.owner.expired() && it->second.version == version &&
        it->second.content == content && w.sizes() == it->second.sizes) {
      ++g_stats.hits;
      return it->second.copy;
    }
  }
  at::Tensor copy = make();  // new memory: a graph that is still alive may hold the old copy
  std::lock_guard lock(g_mutex);
  ++g_stats.misses;
  if (g_cache.size() >= 64 && g_stats.misses % 64 == 0)
    std::erase_if(g_cache, [](auto& item) { return item.second.owner.expired(); });
  g_cache.insert_or_assign(key, Entry{storage.getWeakStorageImpl(), version, content, w.sizes().vec(), copy});
  return copy;
}

at::Tensor round_weight(const at::Tensor& w, const BlockFormat& format, int64_t axis, const LayerRef& layer) {
  if (format.format == Format::fp32) return w;
  if (axis < 0) axis += w.dim();
  if (!cacheable(w)) return round_ste(w, format, axis, layer, plan::Role::weight);
  const bool moves = layer->runtime->compensate_range && range_moves(format);
  const int exponent = moves ? layer->ranges.at(plan::Role::weight).exponent.load() : 0;
  return straight_through(w, weight_copy(
                                 w, CopyUse::rounded, format, axis,
                                 [&] { return round(w, format, axis, *layer, plan::Role::weight); }, exponent));
}

WeightCacheStats weight_cache_stats() {
  std::lock_guard lock(g_mutex);
  auto stats = g_stats;
  stats.entries = int64_t(g_cache.size());
  stats.bytes = 0;
  for (auto& [k, e] : g_cache) stats.bytes += int64_t(e.copy.nbytes());
  return stats;
}
void clear_weight_cache() {
  std::lock_guard lock(g_mutex);
  g_cache.clear();
  g_stats = {};
}

}  // namespace hpqf::engine
