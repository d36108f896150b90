// MNIST and its relatives.
#pragma once
#include <string>

#include "models/data/dataset.h"

namespace hpqf::models {

inline constexpr const char* kFashionMnistDirectory = "/usr/share/datasets/fashion-mnist";

// The files {train,t10k}-{images-idx3,labels-idx1}-ubyte of `directory`, each with or without .gz. Error naming what is
// missing.
Dataset image_dataset(std::string name, const std::string& directory);

// From Debian's package dataset-fashion-mnist (Xiao et al., 2017): 60000 + 10000 images of 28 x 28, 10 classes.
// Error with the apt line when it is not installed.
Dataset fashion_mnist(const std::string& directory = kFashionMnistDirectory);

}  // namespace hpqf::models
