#include "hpqf/kernels/activation.h"

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/choose.h"
#include "hpqf/kernels/ref/activation_ref.h"

namespace hpqf::kernels {
#if defined(__x86_64__)
extern const ActivationImplementation kActivationAvx512, kActivationAvx2;
#endif

namespace {

const ActivationImplementation& best() {
  static const ActivationImplementation& chosen = first_runnable(activation_implementations());
  return chosen;
}

// 8192 elements are 4 to 6 us with AVX2, about what waking a thread costs.
constexpr int64_t kGrain = 8192;

template <class Operands>
void run(const Operands& a, void (*elements)(const Operands&, int64_t, int64_t)) {
  if (a.rows <= 0 || a.cols <= 0) return;
  base::parallel_for(0, a.rows * a.cols, kGrain, [&](int64_t first, int64_t last) { elements(a, first, last); });
}

}  // namespace

void activation(const ActivationForward& a) { run(a, best().forward); }
void activation(const ActivationBackward& a) { run(a, best().backward); }

std::span<const ActivationImplementation> activation_implementations() {
  static const ActivationImplementation list[] = {
#if defined(__x86_64__)
    kActivationAvx512,
    kActivationAvx2,
#endif
    {"ref", [] { return true; }, &ref::activation_forward, &ref::activation_backward},
  };
  return list;
}

}  // namespace hpqf::kernels
