#include "models/data/word_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "hpqf/base/error.h"

namespace hpqf::models {
namespace {

bool letter(unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80; }

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (size_t i = 0; i <= text.size(); ++i) {
    const unsigned char c = i < text.size() ? static_cast<unsigned char>(text[i]) : ' ';
    const bool inside =
        c == '\'' && !word.empty() && i + 1 < text.size() && letter(static_cast<unsigned char>(text[i + 1]));
    if (letter(c) || inside) {
      word += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

WordTokens::WordTokens(const std::vector<std::string_view>& texts, int64_t vocab) {
  if (vocab <= kFirstWord || vocab > std::numeric_limits<int16_t>::max())
    throw Error(fmt::format("a vocabulary of {}", vocab),
                fmt::format("{} to {}", kFirstWord + 1, std::numeric_limits<int16_t>::max()), "4096 is usual here");
  std::unordered_map<std::string, int64_t> counts;
  for (const std::string_view text : texts)
    for (std::string& word : words_of(text)) ++counts[std::move(word)];
  std::vector<std::pair<std::string, int64_t>> order(counts.begin(), counts.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  order.resize(std::min(order.size(), static_cast<size_t>(vocab - kFirstWord)));
  for (size_t i = 0; i < order.size(); ++i)
    numbers_.emplace(std::move(order[i].first), static_cast<int16_t>(kFirstWord + static_cast<int64_t>(i)));
}

std::vector<int16_t> WordTokens::encode(std::string_view text, int64_t length) const {
  std::vector<int16_t> tokens(static_cast<size_t>(length), static_cast<int16_t>(kPadding));
  if (tokens.empty()) return tokens;
  size_t at = 0;
  tokens[at++] = static_cast<int16_t>(kClass);
  for (const std::string& word : words_of(text)) {
    if (at == tokens.size()) break;
    const auto found = numbers_.find(word);
    tokens[at++] = found == numbers_.end() ? static_cast<int16_t>(kUnknown) : found->second;
  }
  return tokens;
}

}  // namespace hpqf::models
