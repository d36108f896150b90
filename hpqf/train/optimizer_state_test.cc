#include "hpqf/train/optimizer_state.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <functional>

#include "hpqf/train/fixtures_test.h"

namespace hpqf::train {
namespace {

namespace optim = torch::optim;
using Make = std::function<std::shared_ptr<optim::Optimizer>(std::vector<at::Tensor>)>;

template <class Class, class Options>
Make make(Options options) {
  return [options](std::vector<at::Tensor> p) { return std::make_shared<Class>(std::move(p), options); };
}

// A class of the user: it may keep more than its base, so it goes through torch::serialize.
struct OwnSgd : optim::SGD {
  using optim::SGD::SGD;
};

struct Case {
  const char* name;  // what optimizer_name says
  Make make;
  const char* some_state;
};

std::vector<Case> cases() {
  return {{"sgd", make<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9).nesterov(true)), "w.momentum_buffer"},
          {"sgd", make<optim::SGD>(optim::SGDOptions(0.1)), ""},
          {"adam", make<optim::Adam>(optim::AdamOptions(0.1).amsgrad(true)), "w.max_exp_avg_sq"},
          {"adamw", make<optim::AdamW>(optim::AdamWOptions(0.1)), "w.exp_avg"},
          {"rmsprop", make<optim::RMSprop>(optim::RMSpropOptions(0.1).momentum(0.5).centered(true)), "w.grad_avg"},
          {"adagrad", make<optim::Adagrad>(optim::AdagradOptions(0.1)), "w.sum"},
          {"", make<OwnSgd>(optim::SGDOptions(0.1).momentum(0.9)), "archive"}};
}

struct Model {
  at::Tensor w = torch::tensor({{1.f, -2.f, 0.5f}, {0.25f, 3.f, -1.f}}).requires_grad_();
  at::Tensor unused = torch::ones({2}).requires_grad_();
  std::vector<LayerParameter> named() const { return {{"", "w", w}, {"", "unused", unused}}; }
  std::vector<at::Tensor> list() const { return {w, unused}; }
};

void steps(Model& model, optim::Optimizer& optimizer, int count) {
  for (int i = 0; i < count; ++i) {
    optimizer.step([&] {
      optimizer.zero_grad();
      at::Tensor loss = (model.w * model.w * model.w.sin()).sum();
      loss.backward();
      return loss;
    });
  }
}

TEST(OptimizerState, ARestoredOptimizerContinuesBitEqual) {
  for (const Case& c : cases()) {
    Model a, b;
    auto one = c.make(a.list());
    EXPECT_EQ(optimizer_name(*one), c.name);
    steps(a, *one, 3);
    const std::vector<NamedTensor> state = optimizer_tensors(*one, a.named());
    if (*c.some_state) {
      EXPECT_TRUE(std::any_of(state.begin(), state.end(), [&](auto& t) { return t.name == c.some_state; }))
          << c.some_state;
    }
    auto two = c.make(b.list());
    {
      at::NoGradGuard no_grad;
      b.w.copy_(a.w);
    }
    check_optimizer_tensors(*two, b.named(), state, "test");
    restore_optimizer(*two, b.named(), state, "test");
    steps(a, *one, 3);
    steps(b, *two, 3);
    EXPECT_TRUE(a.w.equal(b.w)) << c.name << " " << c.some_state;
  }
}

TEST(OptimizerState, RestoredStateIsNotShared) {
  Model a, b;
  auto one = make<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9))(a.list());
  steps(a, *one, 1);
  const std::vector<NamedTensor> state = optimizer_tensors(*one, a.named());
  auto two = make<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9))(b.list());
  restore_optimizer(*two, b.named(), state, "test");
  const at::Tensor before = state[0].tensor.clone();
  steps(b, *two, 1);
  EXPECT_TRUE(before.equal(state[0].tensor));
}

TEST(OptimizerState, WrongStateIsRefusedAndChangesNothing) {
  Model a;
  auto optimizer = make<optim::AdamW>(optim::AdamWOptions(0.1))(a.list());
  steps(a, *optimizer, 2);
  const std::vector<NamedTensor> good = optimizer_tensors(*optimizer, a.named());
  const auto refused = [&](std::vector<NamedTensor> state, const std::string& text) {
    EXPECT_ERROR(restore_optimizer(*optimizer, a.named(), state, "here"), text);
    const std::vector<NamedTensor> now = optimizer_tensors(*optimizer, a.named());
    ASSERT_EQ(now.size(), good.size());
    for (size_t i = 0; i < now.size(); ++i) EXPECT_TRUE(now[i].tensor.equal(good[i].tensor));
  };
  std::vector<NamedTensor> state = good;
  state.pop_back();
  refused(state, "'w.exp_avg_sq' is missing");
  state = good;
  state[1].tensor = torch::zeros({5});
  refused(state, "'w.exp_avg' has another shape");
  state = good;
  state.push_back({"ghost.exp_avg", torch::zeros({1})});
  refused(state, "'ghost.exp_avg' belongs to no parameter");
  state = good;
  state[0].tensor = torch::zeros({2, 3});
  refused(state, "'w.step' is no counter");
}

TEST(OptimizerState, WhatTorchCannotSaveIsAnError) {
  Model a;
  auto lbfgs = make<optim::LBFGS>(optim::LBFGSOptions(0.1).max_iter(2))(a.list());
  steps(a, *lbfgs, 3);
  EXPECT_ERROR(optimizer_tensors(*lbfgs, a.named()), "LBFGS");
}

TEST(OptimizerState, AnArchiveOfAnotherClassIsRefusedAndChangesNothing) {
  Model a, b;
  auto known = make<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9))(a.list());
  auto own = make<OwnSgd>(optim::SGDOptions(0.1).momentum(0.9))(b.list());
  steps(a, *known, 1);
  steps(b, *own, 1);
  EXPECT_ERROR(restore_optimizer(*own, b.named(), optimizer_tensors(*known, a.named()), "here"),
               "another optimizer class");
  const std::vector<NamedTensor> before = optimizer_tensors(*own, b.named());
  EXPECT_ERROR(restore_optimizer(*own, b.named(), {{"archive", torch::zeros({9}, at::kByte)}}, "here"),
               "torch cannot load it");
  EXPECT_EQ(optimizer_tensors(*own, b.named())[0].tensor.numel(), before[0].tensor.numel());
}

TEST(OptimizerState, ByNameWithChecks) {
  Model a;
  EXPECT_EQ(optimizer_name(*make_optimizer({.name = "sgd", .lr = 0.1, .momentum = 0.9}, a.named())), "sgd");
  EXPECT_EQ(optimizer_name(*make_optimizer({}, a.named())), "adamw");
  EXPECT_ERROR(make_optimizer({.name = "adagard"}, a.named()), "sgd, adamw");
  EXPECT_ERROR(make_optimizer({.lr = -1}, a.named()), "learning rate -1");
  a.w.requires_grad_(false);
  EXPECT_EQ(make_optimizer({}, a.named())->param_groups()[0].params().size(), 1);
  a.unused.requires_grad_(false);
  EXPECT_ERROR(make_optimizer({}, a.named()), "without trainable parameters");
}

}  // namespace
}  // namespace hpqf::train
