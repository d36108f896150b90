// The audit hears every op of every step: once it has seen an op it must not touch the heap again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "hpqf/observe/audit.h"

namespace {
thread_local int64_t allocations = 0;
}

// Replaces the allocation functions of the whole process, the library included.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace hpqf::observe {
namespace {

TEST(Audit, SteadyStateAllocatesNothing) {
  Audit audit;
  const std::string layer = "encoder.layers.11.attention.output.dense", reason = "cpu has no avx512_bf16 or amx_bf16";
  OpEvent event;
  event.layer = layer;
  event.op = "linear";
  event.effective_a = formats::parse_block_format("int8[1x128]");
  event.implementation = "emulated";
  event.reason = reason;
  audit.on_op(event);
  int64_t before = allocations;
  for (int i = 0; i < 1000; ++i) audit.on_op(event);
  EXPECT_EQ(allocations - before, 0);
  event.pass = Pass::wgrad;  // a new key does allocate: the counter sees the library
  before = allocations;
  audit.on_op(event);
  EXPECT_GT(allocations - before, 0);
  EXPECT_EQ(audit.report().rows[0].calls, 1001);
}

}  // namespace
}  // namespace hpqf::observe
