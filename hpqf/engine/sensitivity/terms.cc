#include "hpqf/engine/sensitivity/terms.h"

#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <c10/util/accumulate.h>

#include <vector>

namespace hpqf::engine::sensitivity {
namespace {

// The target's dimensions inside `sizes`, first to last; 0 when they are not there.
template <class Range>
uint64_t in_order(at::IntArrayRef sizes, const Range& target) {
  uint64_t mask = 0;
  size_t d = 0;
  for (const int64_t wanted : target) {
    while (d < sizes.size() && sizes[d] != wanted) ++d;
    if (d == sizes.size()) return 0;
    mask |= uint64_t{1} << d++;
  }
  return mask;
}

}  // namespace

uint64_t term_dimensions(at::IntArrayRef sizes, at::IntArrayRef target) {
  if (sizes.empty()) return 0;
  const int64_t terms = c10::multiply_integers(target);
  int64_t product = 1;
  uint64_t mask = 0;
  for (size_t d = 0; d < sizes.size() && product < terms; ++d) {
    product *= sizes[d];
    mask |= uint64_t{1} << d;
  }
  if (product == terms && mask != 0) return mask;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == terms) return uint64_t{1} << d;
  if (const uint64_t found = in_order(sizes, target)) return found;
  if (const uint64_t found = in_order(sizes, std::vector<int64_t>(target.rbegin(), target.rend()))) return found;
  return 1;
}

at::Tensor term_sums(const at::Tensor& gradient, const at::Tensor& change, at::IntArrayRef target) {
  const at::Tensor product = at::mul(gradient, change);
  const uint64_t kept = term_dimensions(product.sizes(), target);
  std::vector<int64_t> summed;
  for (int64_t d = 0; d < product.dim(); ++d)
    if (!(kept >> d & 1)) summed.push_back(d);
  const at::Tensor sums = summed.empty() ? product.to(at::kDouble) : at::sum(product, summed, false, at::kDouble);
  return sums.reshape({-1}).cpu();
}

}  // namespace hpqf::engine::sensitivity
