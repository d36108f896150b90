#include "apps/hpqf/bench_gemm_case.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cmath>

#include "apps/hpqf/bench_options.h"

namespace hpqf::app {
namespace {

constexpr GemmForm kForms[] = {
    {"nt", "forward: y = x w^T", false, false, true},
    {"nn", "input gradient: dx = dy w", false, true, true},
    {"tn", "weight gradient: dw = dy^T x", true, true, false},
};
constexpr int64_t kSampledRows = 64;

at::Tensor normal(int64_t lines, int64_t line, uint64_t seed) {
  return at::randn({lines, line}, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kFloat));
}

at::Tensor turned(const at::Tensor& t, bool turn) { return turn ? t.t() : t; }

}  // namespace

std::span<const GemmForm> gemm_forms() { return kForms; }

const GemmForm& find_gemm_form(const std::string& name) {
  for (const GemmForm& form : kForms) {
    if (form.name == name) return form;
  }
  refuse("forms", name, "nt (forward), nn (input gradient), tn (weight gradient), separated by commas");
}

GemmCase::GemmCase(const LinearShape& s, const GemmForm& form) : form_(form) {
  const bool forward = !form.a_k_major && !form.b_k_major;
  if (forward) {
    rows_ = s.m, columns_ = s.n, contraction_ = s.k;
  } else if (form.weight_operand) {
    rows_ = s.m, columns_ = s.k, contraction_ = s.n;
  } else {
    rows_ = s.n, columns_ = s.k, contraction_ = s.m;
  }
  a_ = form.a_k_major ? normal(contraction_, rows_, 1) : normal(rows_, contraction_, 1);
  b_ = form.b_k_major ? normal(contraction_, columns_, 2) : normal(columns_, contraction_, 2);
  c_ = at::full({rows_, columns_}, std::nan(""), at::TensorOptions(at::kFloat));
}

const at::Tensor& GemmCase::torch_fp32() {
  return at::mm_out(c_, turned(a_, form_.a_k_major), turned(b_, !form_.b_k_major));
}

const at::Tensor& GemmCase::torch_bf16() {
  if (!a_bf16_.defined()) {
    a_bf16_ = a_.to(at::kBFloat16);
    b_bf16_ = b_.to(at::kBFloat16);
    c_bf16_ = at::empty({rows_, columns_}, at::TensorOptions(at::kBFloat16));
  }
  return at::mm_out(c_bf16_, turned(a_bf16_, form_.a_k_major), turned(b_bf16_, !form_.b_k_major));
}

const at::Tensor& GemmCase::integer(const kernels::GemmPath& path, const kernels::GemmBlocks& blocks) {
  kernels::gemm(path, view_a(), {}, view_b(), {}, blocks, result());
  return c_;
}

at::Tensor GemmCase::pack(const kernels::GemmPath& path, const kernels::GemmBlocks& blocks) const {
  // torch aligns to 64 bytes, as packed operands need it.
  at::Tensor packed = at::empty({kernels::packed_bytes(columns_, contraction_, blocks)}, at::TensorOptions(at::kByte));
  kernels::pack_b(path, view_b(), blocks, {}, packed.mutable_data_ptr());
  return packed;
}

const at::Tensor& GemmCase::integer(const kernels::GemmPath& path, const kernels::GemmBlocks& blocks,
                                    const at::Tensor& packed_b) {
  kernels::gemm(path, view_a(), {}, packed_b.const_data_ptr(), columns_, blocks, result());
  return c_;
}

double GemmCase::flops() const {
  return 2.0 * static_cast<double>(rows_) * static_cast<double>(columns_) * static_cast<double>(contraction_);
}

double GemmCase::error(const at::Tensor& result) const {
  const int64_t sampled = std::min(rows_, kSampledRows);
  const at::Tensor rows =
      at::linspace(0, static_cast<double>(rows_ - 1), sampled, at::TensorOptions(at::kDouble)).round().to(at::kLong);
  const at::Tensor a = turned(a_, form_.a_k_major).index_select(0, rows).to(at::kDouble);
  const at::Tensor exact = a.mm(turned(b_, !form_.b_k_major).to(at::kDouble));
  const at::Tensor difference = result.index_select(0, rows).to(at::kDouble).sub(exact);
  return difference.norm().item<double>() / exact.norm().item<double>();
}

kernels::MatrixView GemmCase::view_a() const {
  return {a_.const_data_ptr<float>(), rows_, contraction_, a_.size(1), form_.a_k_major};
}

kernels::MatrixView GemmCase::view_b() const {
  return {b_.const_data_ptr<float>(), columns_, contraction_, b_.size(1), form_.b_k_major};
}

kernels::GemmResult GemmCase::result() { return {c_.mutable_data_ptr<float>(), columns_}; }

}  // namespace hpqf::app
