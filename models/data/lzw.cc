#include "models/data/lzw.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace hpqf::models {
namespace {

constexpr uint32_t kClear = 256, kFirstFree = 257;
constexpr unsigned kLeastBits = 9, kMostBits = 16;

// Codes lie least significant bit first, in groups of eight: when the width changes, or after a clear, the rest of the
// group under way is padding.
class CodeReader {
 public:
  explicit CodeReader(std::string_view bytes) : bytes_(bytes) {}
  bool next(unsigned width, uint32_t* code) {
    if (width != width_) align(width);
    if (bit_ + width > 8 * bytes_.size()) return false;
    uint32_t value = 0;
    for (unsigned i = 0; i < width; ++i, ++bit_) value |= (bytes_[bit_ / 8] >> (bit_ % 8) & 1u) << i;
    *code = value;
    return true;
  }
  void align(unsigned width) {
    const std::size_t group = std::size_t{8} * width_;
    bit_ = group_start_ + (bit_ - group_start_ + group - 1) / group * group;
    group_start_ = bit_;
    width_ = width;
  }

 private:
  std::string_view bytes_;
  std::size_t bit_ = 0, group_start_ = 0;
  unsigned width_ = kLeastBits;
};

}  // namespace

std::string lzw_unpack(std::string_view codes) {
  std::vector<uint32_t> prefix(1u << kMostBits);
  std::vector<char> last(1u << kMostBits);
  for (uint32_t i = 0; i < 256; ++i) last[i] = static_cast<char>(i);

  CodeReader reader(codes);
  std::string out, word;
  unsigned width = kLeastBits;
  uint32_t free = kFirstFree, code = 0, previous = kClear;  // kClear: there is no previous code
  while (reader.next(width, &code)) {
    if (code == kClear) {
      reader.align(kLeastBits);
      width = kLeastBits;
      free = kFirstFree;
      previous = kClear;
      continue;
    }
    // The one code that may come before it is known is the next free one: previous + its own first character.
    const bool unknown = code >= free && !(previous == kClear && code < 256);
    if (unknown && (code > free || previous == kClear)) throw std::runtime_error("impossible LZW code");
    word.clear();
    for (uint32_t c = unknown ? previous : code;; c = prefix[c]) {
      word.push_back(last[c]);
      if (c < 256) break;
    }
    std::reverse(word.begin(), word.end());
    if (unknown) word.push_back(word.front());
    out += word;
    if (previous != kClear && free < (1u << kMostBits)) {
      prefix[free] = previous;
      last[free] = word.front();
      ++free;
    }
    // The encoder is one entry ahead of us, so the width grows when our table has just filled the codes of this width.
    if (free == (1u << width) && width < kMostBits) ++width;
    previous = code;
  }
  return out;
}

}  // namespace hpqf::models
