// Vectors of W 32-bit lanes in the vector extension of GCC and Clang: one text, compiled once for each instruction set.
//
// Everything is in an unnamed namespace and calls nothing outside it: an inline function shared with other files could
// be merged by the linker into the copy built for a newer CPU.
#pragma once
#include <cstdint>
#include <utility>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF  // a fused x * y + z rounds once where the definition rounds twice
#endif

namespace hpqf::kernels {
namespace {

template <int W>
struct Lanes {
  typedef float F __attribute__((vector_size(4 * W)));
  typedef int32_t I __attribute__((vector_size(4 * W)));
  typedef uint32_t U __attribute__((vector_size(4 * W)));
};

constexpr int32_t kAbsBits = 0x7fffffff, kInfinityBits = 0x7f800000, kQuietNanBits = 0x7fc00000;

template <typename V, typename T>
[[gnu::always_inline]] inline V load(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <typename V, typename T>
[[gnu::always_inline]] inline void store(T* p, const V& v) {
  __builtin_memcpy(p, &v, sizeof v);
}
// The first n lanes from memory, the others zero.
template <typename V, typename T>
[[gnu::always_inline]] inline V load_first(const T* p, int64_t n) {
  T lanes[sizeof(V) / sizeof(T)] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return load<V>(lanes);
}
template <typename V, typename T>
[[gnu::always_inline]] inline void store_first(T* p, const V& v, int64_t n) {
  T lanes[sizeof(V) / sizeof(T)];
  store(lanes, v);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}

// The same bits, seen as another lane type.
template <typename To, typename From>
[[gnu::always_inline]] inline To as(const From& v) {
  static_assert(sizeof(To) == sizeof(From));
  return (To)v;
}

template <typename V>
[[gnu::always_inline]] inline V smaller(const V& a, const V& b) {
  return a < b ? a : b;
}
template <typename V>
[[gnu::always_inline]] inline V larger(const V& a, const V& b) {
  return a > b ? a : b;
}
template <typename V>
[[gnu::always_inline]] inline int64_t sum(const V& v) {
  int64_t total = 0;
  for (unsigned i = 0; i < sizeof(V) / 4; ++i) total += v[i];
  return total;
}

// Lanes of a and b (numbered on from a) picked by a constant function of the lane.
template <typename Pick, typename V, int... k>
[[gnu::always_inline]] inline V pick(const V& a, const V& b, std::integer_sequence<int, k...>) {
  return __builtin_shufflevector(a, b, Pick::of(k, static_cast<int>(sizeof...(k)))...);
}
template <typename Pick, typename V>
[[gnu::always_inline]] inline V pick(const V& a, const V& b) {
  return pick<Pick>(a, b, std::make_integer_sequence<int, sizeof(V) / 4>{});
}

template <int kBy>
struct Rotate {
  static constexpr int of(int lane, int lanes) { return (lane + kBy) % lanes; }
};
template <int kHalf, typename I>
[[gnu::always_inline]] inline int32_t largest_lane(const I& v) {
  if constexpr (kHalf == 0) {
    return v[0];
  } else {
    return largest_lane<kHalf / 2>(larger(v, pick<Rotate<kHalf>>(v, v)));
  }
}

}  // namespace
}  // namespace hpqf::kernels
