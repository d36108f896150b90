#include "models/data/verses.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "hpqf/base/error.h"
#include "models/data/word_tokens.h"

namespace hpqf::models {
namespace {

constexpr int64_t kBooks = 66, kValidationEvery = 10;

struct Verse {
  std::string_view text;
  int64_t book;
};

// "Ge1:1 text": letters (a leading digit belongs to the name: "1Sa3:4"), chapter, colon, number, space. Other lines are
// headings.
std::vector<Verse> verses_of(std::string_view text) {
  std::vector<Verse> verses;
  std::string_view book;
  int64_t books = -1;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t space = line.find(' '), colon = line.find(':');
    if (space == std::string_view::npos || colon == std::string_view::npos || colon > space) continue;
    size_t chapter = colon;
    while (chapter > 0 && line[chapter - 1] >= '0' && line[chapter - 1] <= '9') --chapter;
    if (chapter == 0 || chapter == colon) continue;
    if (line.substr(0, chapter) != book) {
      book = line.substr(0, chapter);
      ++books;
    }
    verses.push_back({line.substr(space + 1), books});
  }
  if (books + 1 != kBooks)
    throw Error(fmt::format("data 'verses' with {} books", books + 1), fmt::format("the {} books of the Bible", kBooks),
                "install Debian's package bible-kjv-text anew");
  return verses;
}

int64_t class_of(int64_t book) {
  constexpr int64_t kFirst[] = {0, 5, 17, 22, 27, 39, 44, 65};  // the first book of each class
  return std::upper_bound(std::begin(kFirst), std::end(kFirst), book) - std::begin(kFirst) - 1;
}

Split encode(const std::vector<Verse>& verses, const WordTokens& tokens, int64_t context) {
  const int64_t count = static_cast<int64_t>(verses.size());
  Split split{at::empty({count, context}, at::kShort), at::empty({count}, at::kByte)};
  int16_t* data = split.data.mutable_data_ptr<int16_t>();
  uint8_t* target = split.target.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    const Verse& verse = verses[static_cast<size_t>(i)];
    const std::vector<int16_t> row = tokens.encode(verse.text, context);
    std::memcpy(data + i * context, row.data(), row.size() * sizeof(int16_t));
    target[i] = static_cast<uint8_t>(class_of(verse.book));
  }
  return split;
}

}  // namespace

Dataset verses_dataset(std::string_view text, const DatasetOptions& options) {
  if (options.context < 2)
    throw Error(fmt::format("verses of {} tokens", options.context), "at least 2: [CLS] and a word", "64 is usual");
  std::vector<Verse> train, validation;
  const std::vector<Verse> all = verses_of(text);
  for (size_t i = 0; i < all.size(); ++i) (i % kValidationEvery == 0 ? validation : train).push_back(all[i]);
  std::vector<std::string_view> texts;
  for (const Verse& verse : train) texts.push_back(verse.text);
  const WordTokens tokens(texts, kVerseVocabulary);
  Dataset dataset;
  dataset.name = "verses";
  dataset.task = Task::sentences;
  dataset.classes = std::size(kVerseClasses);
  dataset.vocab = tokens.size();
  dataset.train = encode(train, tokens, options.context);
  dataset.validation = encode(validation, tokens, options.context);
  return dataset;
}

}  // namespace hpqf::models
