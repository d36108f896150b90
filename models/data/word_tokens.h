// Words as numbers: what a text classifier reads.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hpqf::models {

// Runs of ASCII letters and of bytes from 0x80 on, in lower case; an apostrophe inside a word belongs to it. All else
// parts words.
std::vector<std::string> words_of(std::string_view text);

class WordTokens {
 public:
  static constexpr int64_t kPadding = 0, kUnknown = 1, kClass = 2, kFirstWord = 3;

  // The `vocab` - 3 most frequent words of these texts; among equals, the first by the alphabet.
  WordTokens(const std::vector<std::string_view>& texts, int64_t vocab);

  int64_t size() const { return kFirstWord + static_cast<int64_t>(numbers_.size()); }
  // kClass, then the words, cut to `length` or filled up with kPadding.
  std::vector<int16_t> encode(std::string_view text, int64_t length) const;

 private:
  std::unordered_map<std::string, int16_t> numbers_;
};

}  // namespace hpqf::models
