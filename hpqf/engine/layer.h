// A layer as the engine sees it while a plan is attached: name, what the plan says now, and who listens.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/engine/problem_shape.h"
#include "hpqf/engine/range.h"
#include "hpqf/observe/event.h"
#include "hpqf/plan/plan.h"

namespace hpqf::engine {

enum class Strict : uint8_t {
  off,
  formats,  // an op that would run in another format than planned is an Error
  native,   // ... and so is an emulated one
};

struct RuntimeState;
class Probe;

struct Layer {
  std::string name;
  std::string type;
  plan::LayerKind kind = plan::LayerKind::other;
  RuntimeState* runtime = nullptr;  // the owner; alive as long as any LayerRef
  const LayerPrecision& precision() const { return *current.load(std::memory_order_acquire); }

  std::atomic<const LayerPrecision*> current{nullptr};  // replaced between steps only; old values stay alive
  mutable RangeSites ranges;                            // casts of a layer that is otherwise left alone note here
};

// Shared by the Runtime and by every autograd node whose backward still has to follow the plan.
struct RuntimeState : std::enable_shared_from_this<RuntimeState> {
  plan::ModelFacts facts;
  std::deque<Layer> layers;                    // stable addresses; [0] is the model itself ("")
  std::deque<LayerPrecision> precisions;       // every value ever current, append only
  std::shared_ptr<observe::EventSink> events;  // may be null
  Strict strict = Strict::off;
  std::atomic<bool> log_shapes{false};
  std::atomic<bool> compensate_range{false};
  std::atomic<bool> note_ranges{true};   // off while an evaluation runs: it must not steer the training
  std::atomic<bool> own_kernels{false};  // the plan runs layers on our own GEMM: our element-wise loops serve too
  ShapeLog shapes;
  std::atomic<Probe*> probe{nullptr};  // a measurement: ops run in fp32 and are handed to it (probe.h)
  std::string force;                   // implementation forced by tests and benchmarks; "" chooses

  // Events carry string_views: texts built at run time live here, once each.
  std::string_view intern(std::string text) {
    std::lock_guard lock(texts_mutex);
    return *texts.insert(std::move(text)).first;
  }
  std::mutex texts_mutex;
  std::set<std::string> texts;
};

using LayerRef = std::shared_ptr<Layer>;  // aliases the RuntimeState
inline LayerRef ref(Layer* layer) { return LayerRef(layer->runtime->shared_from_this(), layer); }

}  // namespace hpqf::engine
