// Random samples of the shape a reference model trains on: benchmarks need no data set.
#pragma once
#include <cstdint>
#include <string>

#include "hpqf/train/loader.h"
#include "models/task.h"

namespace hpqf::app {

inline constexpr int64_t kBenchContext = 128;     // bytes of a text sample
inline constexpr int64_t kBenchVocabulary = 256;  // words of a sentence: what the models are made with by default
inline constexpr int64_t kBenchImage = 28;        // rows and columns of an image, one channel, as in Fashion-MNIST

// The same on every call.
train::Batch synthetic_batch(models::Task task, int64_t samples);

int64_t default_batch_size(const std::string& model);  // that of hpqf train

}  // namespace hpqf::app
