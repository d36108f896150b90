#include "hpqf/engine/sensitivity/hessian.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hpqf/base/error.h"
#include "hpqf/base/random.h"

namespace hpqf::engine::sensitivity {
namespace {

using at::Tensor;
using Vector = std::vector<Tensor>;  // one tensor for each parameter of a block

constexpr uint64_t kTraceStream = 0x7472616365, kEigenStream = 0x656967656e;  // "trace", "eigen"
constexpr int64_t kFewestProbes = 10;
constexpr double kTiny = 1e-12;

// +1 or -1 for each element: a function of (seed, stream, draw, parameter, index).
Tensor signs(const Tensor& like, uint64_t seed, uint64_t stream, uint64_t draw, uint64_t parameter) {
  Tensor out = at::empty(like.sizes(), at::TensorOptions().dtype(at::kFloat));
  float* p = out.mutable_data_ptr<float>();
  const uint64_t key = stream ^ (draw << 24) ^ (parameter << 44);
  base::PhiloxBlock block{};
  for (int64_t i = 0; i < out.numel(); ++i) {  // 128 signs a block
    if (i % 128 == 0) block = base::random_block(seed, key, uint64_t(i) / 128);
    p[i] = block[size_t(i % 128) / 32] >> (i % 32) & 1 ? 1.0f : -1.0f;
  }
  return out.to(like.options());
}

Vector random_vector(const Curvature& c, const std::vector<size_t>& only, uint64_t seed, uint64_t stream,
                     uint64_t draw) {
  Vector v;
  for (size_t i : only) v.push_back(signs(c.parameters()[i], seed, stream, draw, i));
  return v;
}

double dot(const Tensor& a, const Tensor& b) { return a.mul(b).sum(at::kDouble).item<double>(); }
double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += dot(a[i], b[i]);
  return sum;
}
void remove(Vector& v, const Vector& direction) {
  const double part = dot(v, direction);
  for (size_t i = 0; i < v.size(); ++i) v[i] = v[i].sub(direction[i], part);
}
bool normalise(Vector& v) {
  const double length = std::sqrt(dot(v, v));
  if (!(length > kTiny)) return false;
  for (Tensor& t : v) t = t.div(length);
  return true;
}

struct Running {
  double sum = 0, squares = 0;
  int64_t n = 0;
  void add(double x) { sum += x, squares += x * x, ++n; }
  Trace result() const {
    const double count = double(n), mean = sum / count;
    if (n < 2) return {mean, 0};
    return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean) / (count - 1))};
  }
};

void check_finite(double x) {
  if (!std::isfinite(x))
    throw Error("the Hessian of a loss whose second derivatives are not finite", "finite second derivatives",
                "leave the Hessian out: the Fisher score needs no second derivative");
}

}  // namespace

std::vector<double> top_eigenvalues(Curvature& curvature, const std::vector<size_t>& only, int64_t count,
                                    const HessianOptions& options) {
  at::NoGradGuard no_grad;
  std::vector<double> values;
  std::vector<Vector> found;
  int64_t dimension = 0;
  for (size_t i : only) dimension += curvature.parameters()[i].numel();
  while (int64_t(values.size()) < std::min(count, dimension)) {
    Vector v = random_vector(curvature, only, options.seed, kEigenStream, values.size());
    for (const Vector& other : found) remove(v, other);
    if (!normalise(v)) break;
    double value = 0;
    for (int64_t k = 0; k < options.iterations; ++k) {
      Vector h = curvature.product(v, only);
      for (const Vector& other : found) remove(h, other);
      const double next = dot(h, v);
      check_finite(next);
      const bool settled = k > 0 && std::abs(next - value) < options.tolerance * std::max(std::abs(next), kTiny);
      value = next;
      if (!normalise(h)) break;  // the rest of the spectrum is zero
      v = std::move(h);
      if (settled) break;
    }
    values.push_back(value);
    found.push_back(std::move(v));
  }
  std::sort(values.begin(), values.end(), [](double a, double b) { return std::abs(a) > std::abs(b); });
  return values;
}

Traces traces(Curvature& curvature, const std::vector<std::vector<size_t>>& blocks, const HessianOptions& options) {
  at::NoGradGuard no_grad;
  std::vector<size_t> all(curvature.parameters().size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::vector<Running> block_sums(blocks.size());
  Running whole;
  for (int64_t probe = 0; probe < options.probes; ++probe) {
    const Vector z = random_vector(curvature, all, options.seed, kTraceStream, uint64_t(probe));
    const Vector h = curvature.product(z, all);
    std::vector<double> parts;
    for (size_t i : all) parts.push_back(dot(z[i], h[i]));
    const double total = std::accumulate(parts.begin(), parts.end(), 0.0);
    check_finite(total);
    whole.add(total);
    for (size_t b = 0; b < blocks.size(); ++b) {
      double sum = 0;
      for (size_t i : blocks[b]) sum += parts[i];
      block_sums[b].add(sum);
    }
    const Trace now = whole.result();
    if (probe + 1 >= kFewestProbes && now.standard_error <= options.trace_error * std::max(std::abs(now.mean), kTiny))
      break;
  }
  Traces result{.whole = whole.result(), .probes = whole.n};
  for (const Running& r : block_sums) result.blocks.push_back(r.result());
  return result;
}

HessianResult add_hessian(plan::Sensitivity& s, Curvature& curvature, const std::vector<std::vector<size_t>>& blocks,
                          const HessianOptions& options) {
  if (options.probes < 2 || options.iterations < 1 || options.eigenvalues < 1)
    throw Error(fmt::format("a Hessian from {} probes, {} iterations, {} eigenvalues", options.probes,
                            options.iterations, options.eigenvalues),
                "2 probes, 1 iteration and 1 eigenvalue or more", "raise them");
  std::vector<size_t> all(curvature.parameters().size());
  std::iota(all.begin(), all.end(), size_t{0});
  HessianResult result;
  result.eigenvalues = top_eigenvalues(curvature, all, options.eigenvalues, options);
  const Traces t = traces(curvature, blocks, options);
  result.trace = t.whole.mean, result.trace_stderr = t.whole.standard_error, result.probes = t.probes;
  for (size_t l = 0; l < s.layers.size(); ++l) {
    if (blocks[l].empty()) continue;
    plan::LayerSensitivity& layer = s.layers[l];
    const std::vector<double> top = top_eigenvalues(curvature, blocks[l], 1, options);
    layer.hessian =
        plan::Hessian{top.empty() ? 0.0 : top.front(), t.blocks[l].mean, t.blocks[l].standard_error, t.probes};
    double weights = 0, square = 0;
    for (size_t i : blocks[l]) {
      const Tensor& w = curvature.parameters()[i];
      weights += double(w.numel());
      square += w.detach().square().sum(at::kDouble).item<double>();
    }
    for (plan::FormatScore& score : layer.scores)
      if (score.operand == plan::Operand::weight && score.error)
        score.omega = std::max(layer.hessian->trace, 0.0) / weights * *score.error * square;
  }
  result.by_differences = curvature.by_differences();
  return result;
}

}  // namespace hpqf::engine::sensitivity
