// Small models and checks shared by the tests of this room.
#pragma once
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <filesystem>
#include <string>

#include "hpqf/base/error.h"
#include "hpqf/train/step.h"

namespace hpqf::train {

// Two linear layers with dropout between them.
struct MlpImpl : torch::nn::Module {
  explicit MlpImpl(double dropout = 0, int64_t hidden = 16) {
    fc1 = register_module("fc1", torch::nn::Linear(8, hidden));
    drop = register_module("drop", torch::nn::Dropout(dropout));
    fc2 = register_module("fc2", torch::nn::Linear(hidden, 3));
  }
  at::Tensor forward(const at::Tensor& x) { return fc2(drop(fc1(x).relu())); }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
  torch::nn::Dropout drop{nullptr};
};
TORCH_MODULE(Mlp);

inline at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& target) {
  return torch::nn::functional::cross_entropy(output, target);
}

struct Data {
  at::Tensor x, y;
};
inline Data small_data(int64_t samples = 50) {
  torch::manual_seed(11);
  at::Tensor x = torch::randn({samples, 8});
  return {x, x.sum(1).gt(0).to(at::kLong) + x.select(1, 0).gt(1).to(at::kLong)};
}

// The message of the Error that `call` throws; "" and a failure when it throws none.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_FALSE(e.asked().empty() || e.allowed().empty() || e.todo().empty());
    return e.what();
  }
  ADD_FAILURE() << "no Error";
  return "";
}
#define EXPECT_ERROR(call, text) \
  EXPECT_NE(error_of([&] { call; }).find(text), std::string::npos) << error_of([&] { call; })

// An empty folder that is gone with the test.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "hpqf-train-XXXXXX").string()) {
    if (!mkdtemp(path_.data())) throw std::runtime_error("mkdtemp");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace hpqf::train
