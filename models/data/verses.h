// Verses of the Bible and the part they come from: 31,102 sentences in eight classes of very different size.
#pragma once
#include <string_view>

#include "models/data/dataset.h"

namespace hpqf::models {

inline constexpr const char* kVerseClasses[] = {
    "law", "history", "wisdom", "major prophets", "minor prophets", "gospels and acts", "letters", "revelation"};
inline constexpr int64_t kVerseVocabulary = 4096;

// Lines "Ge1:1 In the beginning ...", as read_bible() gives them: books in their usual order. Every tenth verse
// validates; the vocabulary is that of the others. Samples: [CLS] and words as in word_tokens.h, int16 [N, context].
// Error unless there are 66 books.
Dataset verses_dataset(std::string_view text, const DatasetOptions& options);

}  // namespace hpqf::models
