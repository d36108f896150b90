#include "hpqf/engine/key.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <array>
#include <string>

#include "hpqf/base/error.h"
#include "hpqf/engine/ops.h"
#include "hpqf/engine/thread_pool.h"

namespace hpqf::engine {
namespace {

// Autocast keys see composite ops (linear, conv2d, lstm) before they decompose, and their casts are recorded by
// autograd. These backends ship no autocast kernels of their own in torch; PrivateUse1 stays free for accelerators such
// as torch_npu.
constexpr std::array kCandidates = {c10::DispatchKey::AutocastIPU, c10::DispatchKey::AutocastHPU,
                                    c10::DispatchKey::AutocastXLA};

bool taken(c10::DispatchKey k) {
  auto& dispatcher = c10::Dispatcher::singleton();
  if (dispatcher.hasBackendFallbackForDispatchKey(k)) return true;
  auto linear = dispatcher.findSchema({"aten::linear", ""});
  return linear && linear->hasKernelForDispatchKey(k);
}

c10::DispatchKey choose() {
  std::string owners;
  for (auto k : kCandidates) {
    if (!taken(k)) return k;
    owners += std::string(owners.empty() ? "" : ", ") + c10::toString(k);
  }
  throw Error("a spare autocast dispatch key to intercept ops on", "one of " + owners + ", not used by another library",
              "load HPQF before the library that registered these keys, and only one copy of HPQF per process");
}

}  // namespace

c10::DispatchKey key() {
  static const c10::DispatchKey k = choose();
  return k;
}

void install() {
  // Leaked on purpose: threads may outlive main, and the dispatcher may be gone when static destructors run.
  static const bool done = [] {
    const auto k = key();
    (new torch::Library(torch::Library::IMPL, "_", k, __FILE__, __LINE__))
        ->fallback(torch::CppFunction::makeFallthrough());
    auto* aten = new torch::Library(torch::Library::IMPL, "aten", k, __FILE__, __LINE__);
    register_gemm_ops(*aten);
    register_lookup_ops(*aten);
    register_conv_ops(*aten);
    register_rnn_ops(*aten);
    register_rule_ops(*aten);
    register_elementwise_ops(*aten);
    base::set_parallel_backend(&torch_parallel);
    return true;
  }();
  (void)done;
}

}  // namespace hpqf::engine
