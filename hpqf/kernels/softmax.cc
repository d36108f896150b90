#include "hpqf/kernels/softmax.h"

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/choose.h"
#include "hpqf/kernels/ref/softmax_ref.h"

namespace hpqf::kernels {
#if defined(__x86_64__)
extern const SoftmaxImplementation kSoftmaxAvx512, kSoftmaxAvx2;
#endif

namespace {

const SoftmaxImplementation& best() {
  static const SoftmaxImplementation& chosen = first_runnable(softmax_implementations());
  return chosen;
}

// 8192 elements are some 5 us with AVX2, about what waking a thread costs.
constexpr int64_t kGrain = 8192;

template <class Operands>
void run(const Operands& a, void (*rows)(const Operands&, int64_t, int64_t)) {
  if (a.rows <= 0 || a.cols <= 0) return;
  const int64_t grain = (kGrain + a.cols - 1) / a.cols;
  base::parallel_for(0, a.rows, grain, [&](int64_t first, int64_t last) { rows(a, first, last); });
}

}  // namespace

void softmax(const SoftmaxForward& a) { run(a, best().forward); }
void softmax(const SoftmaxBackward& a) { run(a, best().backward); }

std::span<const SoftmaxImplementation> softmax_implementations() {
  static const SoftmaxImplementation list[] = {
#if defined(__x86_64__)
    kSoftmaxAvx512,
    kSoftmaxAvx2,
#endif
    {"ref", [] { return true; }, &ref::softmax_forward, &ref::softmax_backward},
  };
  return list;
}

}  // namespace hpqf::kernels
