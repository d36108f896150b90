// One product of a linear layer: its operands, the ways to compute it, and how far a result is from the exact one.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

#include "apps/hpqf/bench_shapes.h"
#include "hpqf/kernels/gemm/integer_gemm.h"

namespace hpqf::app {

struct GemmForm {
  const char* name;
  const char* meaning;
  bool a_k_major, b_k_major;
  bool weight_operand;  // B is the weight: it can be packed once for many products
};
std::span<const GemmForm> gemm_forms();                   // nt: forward, nn: input gradient, tn: weight gradient
const GemmForm& find_gemm_form(const std::string& name);  // Error with the list of names

// Normal operands, the same on every construction; results go into memory that is allocated once.
class GemmCase {
 public:
  GemmCase(const LinearShape& shape, const GemmForm& form);

  const at::Tensor& torch_fp32();
  const at::Tensor& torch_bf16();  // operands that are bf16 already: no time for casts
  // From fp32: both operands quantised, to nearest, and packed in every call.
  const at::Tensor& integer(const kernels::GemmPath& path, const kernels::GemmBlocks& blocks);
  // With B packed beforehand.
  at::Tensor pack(const kernels::GemmPath& path, const kernels::GemmBlocks& blocks) const;
  const at::Tensor& integer(const kernels::GemmPath& path, const kernels::GemmBlocks& blocks,
                            const at::Tensor& packed_b);

  double flops() const;
  // Frobenius norm of the difference to the product in fp64, over that product's; on at most 64 of the rows.
  double error(const at::Tensor& result) const;

 private:
  kernels::MatrixView view_a() const;
  kernels::MatrixView view_b() const;
  kernels::GemmResult result();

  const GemmForm& form_;
  int64_t rows_, columns_, contraction_;
  at::Tensor a_, b_;  // as they lie in memory
  at::Tensor a_bf16_, b_bf16_, c_, c_bf16_;
};

}  // namespace hpqf::app
