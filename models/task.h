// What a model learns from, which decides its shapes, its loss and how its quality is told.
#pragma once
#include <cstdint>

namespace hpqf::models {

enum class Task : uint8_t {
  images,     // classification; quality: accuracy
  text,       // the next byte; quality: perplexity = exp(mean cross entropy)
  sentences,  // classification of token sequences; quality: accuracy
};
inline const char* name(Task task) {
  return task == Task::images ? "images" : task == Task::text ? "text" : "sentences";
}
// One label for each sample.
inline bool classifies(Task task) { return task != Task::text; }

}  // namespace hpqf::models
