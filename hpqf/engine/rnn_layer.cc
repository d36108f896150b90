#include "hpqf/engine/rnn_layer.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "hpqf/base/error.h"
#include "hpqf/engine/rnn_saved.h"

namespace hpqf::engine {
namespace {

namespace ag = torch::autograd;

// Not a Tensor argument, so that autograd does not take it for an input.
struct Rounded {
  at::Tensor x;
};

// Inputs in this order; the optional ones last, because edges exist only for those that are there.
constexpr size_t kX = 0, kH0 = 1, kWih = 2, kWhh = 3, kC0 = 4;

struct RnnFunction : ag::Function<RnnFunction> {
  static ag::variable_list forward(ag::AutogradContext* ctx, const at::Tensor& x, const at::Tensor& h0,
                                   const at::Tensor& w_ih, const at::Tensor& w_hh, const std::optional<at::Tensor>& c0,
                                   const std::optional<at::Tensor>& b_ih, const std::optional<at::Tensor>& b_hh,
                                   const c10::intrusive_ptr<RnnNode>& node, const Rounded& rounded) {
    // Thousands of small ops: autograd's own keys would do nothing here but cost.
    at::AutoDispatchBelowADInplaceOrView below;
    auto r = rnn_forward(*node, x, rounded.x, h0, c0, {w_ih, w_hh, b_ih, b_hh});
    auto sizes = x.sizes().vec();
    sizes.back() = r.output.size(1);
    const at::Tensor output = r.output.view(sizes);  // below the autograd keys: not a view to autograd
    ctx->set_materialize_grads(false);
    auto& s = r.saved;
    // The output goes in as what the caller gets, so that writing over it is noticed.
    const at::Tensor& gates = s.gates.is_same(r.output) ? output : s.gates;
    ctx->save_for_backward({s.x, s.h, s.w_ih, s.w_hh, gates, s.c_before, s.h_before, s.hn});
    ctx->saved_data["node"] = c10::IValue::make_capsule(node);
    ctx->saved_data["batch"] = h0.size(0);
    ctx->saved_data["biases"] = b_ih.has_value();
    ctx->saved_data["sizes"] = x.sizes();
    if (node->cell == Cell::lstm) return {output, r.h_n, r.c_n};
    return {output, r.h_n};
  }

  static ag::variable_list backward(ag::AutogradContext* ctx, ag::variable_list grads) {
    auto holder = ctx->saved_data["node"].toCapsule();
    const RnnNode& node = static_cast<const RnnNode&>(*holder);
    if (at::GradMode::is_enabled()) {
      throw Error("second derivatives through the recurrent layer '" + node.layer->name + "' (" + op_name(node.cell) +
                      ") under a plan",
                  "first derivatives; second derivatives when the whole pass, forward too, runs outside the plan",
                  "run this pass inside engine::Passthrough, where torch's own fp32 operator runs");
    }
    const auto saved = ctx->get_saved_variables();
    at::AutoDispatchBelowADInplaceOrView below;
    const bool lstm = node.cell == Cell::lstm, biases = ctx->saved_data["biases"].toBool();
    const size_t first_bias = kC0 + (lstm ? 1 : 0);
    RnnNeeds needs;
    needs.x = ctx->needs_input_grad(kX);
    needs.w_ih = ctx->needs_input_grad(kWih);
    needs.w_hh = ctx->needs_input_grad(kWhh);
    needs.b_ih = biases && ctx->needs_input_grad(first_bias);
    needs.b_hh = biases && ctx->needs_input_grad(first_bias + 1);
    const auto sizes = ctx->saved_data["sizes"].toIntVector();
    auto flat = [](const at::Tensor& t) { return t.defined() ? t.reshape({-1, t.size(-1)}) : t; };
    auto dense = [&](const at::Tensor& t) {
      return t.defined() ? flat(t).contiguous() : t;
    };  // read through raw pointers
    RnnSaved s{flat(saved[0]),  saved[1],        saved[2],        saved[3],
               dense(saved[4]), dense(saved[5]), dense(saved[6]), dense(saved[7])};
    RnnGradients g = rnn_backward(node, s, flat(grads[0]), grads[1], lstm ? grads[2] : at::Tensor(),
                                  ctx->saved_data["batch"].toInt(), needs);
    if (g.x.defined()) g.x = g.x.view(sizes);
    return {g.x, g.h0, g.w_ih, g.w_hh, g.c0, g.b_ih, g.b_hh, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

RnnLayerResult run_rnn_layer(const c10::intrusive_ptr<RnnNode>& node, const at::Tensor& x, const at::Tensor& x_rounded,
                             const at::Tensor& h0, const std::optional<at::Tensor>& c0, const RnnWeights& weights) {
  auto out =
      RnnFunction::apply(x, h0, weights.w_ih, weights.w_hh, c0, weights.b_ih, weights.b_hh, node, Rounded{x_rounded});
  return {out[0], out[1], out.size() > 2 ? out[2] : at::Tensor()};
}

}  // namespace hpqf::engine
