#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "hpqf/engine/rnn.h"
#include "hpqf/engine/rnn_layer.h"

namespace hpqf::engine {
namespace {

// Why raw memory of this tensor cannot be read and written, or "".
std::string unreadable(const at::Tensor& t) {
  using c10::DispatchKey;
  if (!t.defined()) return "an undefined tensor";
  const auto keys = t.key_set();
  if (t.unsafeGetTensorImpl()->is_python_dispatch()) return "a tensor subclass with its own dispatch";
  if (keys.has_any(c10::DispatchKeySet(
          {DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper, DispatchKey::Functionalize})))
    return "a function transform (functorch) is active";
  if (t.is_meta()) return "meta tensors have no values";
  if (!t.is_cpu()) return "runs on CPU only, not on " + c10::DeviceTypeName(t.device().type(), true);
  if (t.layout() != at::kStrided || t.is_nested()) return "dense tensors only";
  if (t.is_neg() || t._is_zerotensor()) return "a lazily negated or zero tensor";
  if (t._fw_grad(0).defined()) return "forward-mode derivatives";
  return "";
}

// The shapes of one call; torch's own checks name the argument at fault.
bool shapes_fit(const RnnCall& call) {
  const int64_t directions = call.bidirectional ? 2 : 1, stride = call.has_biases ? 4 : 2;
  const bool packed = call.batch_sizes.has_value();
  if (call.input.dim() != (packed ? 2 : 3) || call.state.size() != (call.cell == Cell::lstm ? 2u : 1u)) return false;
  int64_t batch = 0;
  if (packed) {
    const at::Tensor& sizes = *call.batch_sizes;
    if (sizes.dim() != 1 || sizes.numel() == 0 || sizes.scalar_type() != at::kLong) return false;
    const at::Tensor dense = sizes.contiguous();
    const int64_t* rows = dense.const_data_ptr<int64_t>();
    int64_t total = 0;
    for (int64_t t = 0; t < dense.numel(); ++t) {
      if (rows[t] < 0 || (t > 0 && rows[t] > rows[t - 1])) return false;
      total += rows[t];
    }
    if (total != call.input.size(0)) return false;
    batch = rows[0];
  } else {
    if (call.input.size(call.batch_first ? 1 : 0) == 0) return false;
    batch = call.input.size(call.batch_first ? 0 : 1);
  }
  const int64_t hidden = call.state[0].dim() == 3 ? call.state[0].size(2) : 0, gates = gates_of(call.cell) * hidden;
  if (hidden == 0) return false;
  for (const at::Tensor& s : call.state) {
    if (s.sizes() != at::IntArrayRef({call.num_layers * directions, batch, hidden})) return false;
  }
  for (int64_t i = 0; i < call.num_layers * directions; ++i) {
    const auto p = call.params.slice(i * stride, stride);
    const int64_t inputs = i < directions ? call.input.size(-1) : directions * hidden;
    if (p[0].sizes() != at::IntArrayRef({gates, inputs}) || p[1].sizes() != at::IntArrayRef({gates, hidden}))
      return false;
    for (int64_t b = 2; b < stride; ++b) {
      if (p[b].sizes() != at::IntArrayRef({gates})) return false;
    }
  }
  return true;
}

}  // namespace

std::string rnn_refusal(const RnnCall& call, const LayerPrecision& precision) {
  if (c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode))
    return "a function transform (functorch) is active";
  if (precision.accumulate != Format::fp32) return "recurrent layers accumulate in fp32 only";
  std::string why = unreadable(call.input);
  for (const at::TensorList list : {call.state, call.params}) {
    for (size_t i = 0; i < list.size() && why.empty(); ++i) why = unreadable(list[i]);
  }
  if (why.empty() && call.batch_sizes && (!call.batch_sizes->is_cpu() || call.batch_sizes->is_meta()))
    why = "batch sizes must be on the CPU";
  if (!why.empty()) return why;

  for (const at::TensorList list : {at::TensorList(call.input), call.state, call.params}) {
    for (const at::Tensor& t : list) {
      if (t.scalar_type() != at::kFloat) return std::string("fp32 tensors only, not ") + c10::toString(t.scalar_type());
    }
  }
  const int64_t stride = call.has_biases ? 4 : 2, cells = call.num_layers * (call.bidirectional ? 2 : 1);
  const auto count = static_cast<int64_t>(call.params.size());
  if (call.cell == Cell::lstm && count == cells * (stride + 1)) return "LSTM with projections (proj_size)";
  if (count != cells * stride || !shapes_fit(call)) return "the arguments do not fit together; torch says which";
  return "";
}

}  // namespace hpqf::engine
