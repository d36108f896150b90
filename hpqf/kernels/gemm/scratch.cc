#include "hpqf/kernels/gemm/scratch.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace hpqf::kernels {
namespace {

constexpr int64_t kHugePage = 2 << 20;

class Buffer {
 public:
  ~Buffer() { std::free(data_); }
  char* get(int64_t bytes) {
    if (bytes > size_) grow(bytes);
    return data_;
  }

 private:
  void grow(int64_t bytes) {
    std::free(data_);
    data_ = nullptr;
    size_ = 0;
    const int64_t alignment = bytes >= kHugePage ? kHugePage : 64;
    const int64_t size = (bytes + alignment - 1) / alignment * alignment;
    data_ = static_cast<char*>(std::aligned_alloc(size_t(alignment), size_t(size)));
    if (!data_) throw std::bad_alloc();
    size_ = size;
#if defined(MADV_HUGEPAGE)
    if (size >= kHugePage) madvise(data_, size_t(size), MADV_HUGEPAGE);
#endif
  }
  char* data_ = nullptr;
  int64_t size_ = 0;
};

thread_local Buffer t_buffers[size_t(Scratch::count)];

}  // namespace

char* scratch(Scratch slot, int64_t bytes) { return t_buffers[size_t(slot)].get(bytes); }

}  // namespace hpqf::kernels
