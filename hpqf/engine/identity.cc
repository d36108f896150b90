#include "hpqf/engine/identity.h"

#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace hpqf::engine {
namespace {

struct Entry {
  int64_t offset, numel;
  Layer* layer;
};
struct StorageEntries {
  c10::weak_intrusive_ptr<c10::StorageImpl> owner;  // weak: an address reused after a free must not find the old layer
  std::vector<Entry> entries;
};
using Map = std::unordered_map<const c10::StorageImpl*, StorageEntries>;

// Readers work on a snapshot that each thread refreshes when the generation moves: no lock on the way of an op.
std::mutex g_mutex;
std::shared_ptr<const Map> g_map = std::make_shared<Map>();
std::vector<Layer*> g_roots;
std::atomic<uint64_t> g_generation{1};

struct Snapshot {
  uint64_t generation = 0;
  std::shared_ptr<const Map> map;
  Layer* root = nullptr;
};
thread_local Snapshot t_snapshot;

const Snapshot& snapshot() {
  const uint64_t now = g_generation.load(std::memory_order_acquire);
  if (t_snapshot.generation != now) {
    std::lock_guard lock(g_mutex);
    t_snapshot = {g_generation.load(), g_map, g_roots.empty() ? nullptr : g_roots.back()};
  }
  return t_snapshot;
}

template <class Change>
void change(Change&& apply) {
  std::lock_guard lock(g_mutex);
  auto next = std::make_shared<Map>(*g_map);
  std::erase_if(*next, [](auto& item) { return item.second.owner.expired(); });
  apply(*next);
  g_map = std::move(next);
  g_generation.fetch_add(1, std::memory_order_release);
}

bool below(const Layer& layer, const Layer& top) {
  return layer.runtime == top.runtime && (&layer == &top || top.name.empty() || layer.name.starts_with(top.name + "."));
}

}  // namespace

void register_parameters(const std::vector<std::pair<at::Tensor, Layer*>>& parameters) {
  change([&](Map& map) {
    for (const auto& [t, layer] : parameters) {
      if (!t.defined() || !t.has_storage() || t.numel() == 0) continue;
      auto storage = t.storage();
      auto [it, fresh] =
          map.try_emplace(storage.unsafeGetStorageImpl(), StorageEntries{storage.getWeakStorageImpl(), {}});
      it->second.entries.push_back({t.storage_offset(), t.numel(), layer});
    }
  });
}

void unregister(const RuntimeState* runtime) {
  change([&](Map& map) {
    for (auto& [storage, list] : map) std::erase_if(list.entries, [&](auto& e) { return e.layer->runtime == runtime; });
    std::erase_if(map, [](auto& item) { return item.second.entries.empty(); });
  });
}

Layer* owner_of(const at::Tensor& t, const Layer* top, Use use) {
  if (!t.has_storage()) return nullptr;
  const auto& map = *snapshot().map;
  auto it = map.find(t.storage().unsafeGetStorageImpl());
  if (it == map.end() || it->second.owner.expired()) return nullptr;
  const int64_t first = t.storage_offset(), numel = t.numel();
  Layer* best = nullptr;
  int best_score = -1;
  for (const auto& e : it->second.entries) {
    if (first < e.offset || first + numel > e.offset + e.numel)
      continue;  // a slice of a parameter is still that layer's
    if (top && !below(*e.layer, *top)) continue;
    const bool lookup = e.layer->kind == plan::LayerKind::embedding;
    const int score =
        (e.numel == numel) + 2 * (lookup == (use == Use::lookup));  // tied weights: the op decides; then the newest
    if (score >= best_score) best = e.layer, best_score = score;
  }
  return best;
}

Layer* functional_owner() { return snapshot().root; }
void open_functional(Layer* root) {
  std::lock_guard lock(g_mutex);
  g_roots.push_back(root);
  g_generation.fetch_add(1, std::memory_order_release);
}
void close_functional(const RuntimeState* runtime) {
  std::lock_guard lock(g_mutex);
  std::erase_if(g_roots, [&](Layer* l) { return l->runtime == runtime; });
  g_generation.fetch_add(1, std::memory_order_release);
}

}  // namespace hpqf::engine
