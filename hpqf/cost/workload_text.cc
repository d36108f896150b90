#include <fmt/format.h>

#include <utility>

#include "hpqf/cost/workload.h"

namespace hpqf::cost {
namespace {

Workload text_workload(std::string name, double seq) {
  Workload work;
  work.model = std::move(name);
  work.sample = fmt::format("sequence of {} tokens", seq);
  work.tokens = seq;
  return work;
}

void note_attention(Workload& work, const TransformerShape& s) {
  work.assumptions.push_back({Basis::assumed, s.fused_attention
                                                  ? "attention is fused: its probabilities never reach memory"
                                                  : "attention keeps its probabilities in memory"});
}

}  // namespace

Workload gpt(std::string name, const TransformerShape& s) {
  Workload work = text_workload(std::move(name), s.seq);
  auto& ops = work.ops;
  const double h = s.hidden, elements = s.seq * h;
  ops.push_back(embedding("tokens", s.seq, s.vocab, h));
  ops.push_back(embedding("positions", s.seq, s.positions > 0 ? s.positions : s.seq, h));
  ops.push_back(elementwise("", "add", elements, 2, 0));
  for (int i = 0; i < static_cast<int>(s.layers); ++i) {
    const std::string block = fmt::format("blocks.{}.", i);
    ops.push_back(norm(block + "norm1", elements, h));
    ops.push_back(linear(block + "attention.qkv", s.seq, h, 3 * h));
    ops.push_back(attention(block + "attention", {.heads = s.heads,
                                                  .queries = s.seq,
                                                  .keys = s.seq,
                                                  .dim = h / s.heads,
                                                  .causal = s.causal,
                                                  .fused = s.fused_attention}));
    ops.push_back(linear(block + "attention.proj", s.seq, h, h));
    ops.push_back(elementwise(block, "add", elements, 2, 0));
    ops.push_back(norm(block + "norm2", elements, h));
    ops.push_back(linear(block + "up", s.seq, h, 4 * h));
    ops.push_back(elementwise(block, "gelu", 4 * elements));
    ops.push_back(linear(block + "down", s.seq, 4 * h, h));
    ops.push_back(elementwise(block, "add", elements, 2, 0));
  }
  ops.push_back(norm("norm", elements, h));
  ops.push_back(linear("head", s.seq, h, s.vocab, /*bias=*/false));
  ops.push_back(cross_entropy(s.seq, s.vocab));
  if (s.tied_head) work.tied_parameters = s.vocab * h;
  work.assumptions.push_back(
      {Basis::modelled, s.causal == Causal::counted_exact
                            ? "causal attention is counted as the pairs its mask leaves, T (T + 1) / 2"
                            : "causal attention is counted in full, T x T pairs: an upper bound where a kernel skips "
                              "what the mask hides"});
  note_attention(work, s);
  return work;
}

Workload bert(std::string name, const TransformerShape& s) {
  Workload work = text_workload(std::move(name), s.seq);
  auto& ops = work.ops;
  const double h = s.hidden, elements = s.seq * h;
  ops.push_back(embedding("bert.embeddings.word_embeddings", s.seq, s.vocab, h));
  ops.push_back(embedding("bert.embeddings.position_embeddings", s.seq, s.positions > 0 ? s.positions : 512, h));
  ops.push_back(embedding("bert.embeddings.token_type_embeddings", s.seq, 2, h));
  ops.push_back(elementwise("bert.embeddings", "add", elements, 3, 0));
  ops.push_back(norm("bert.embeddings.LayerNorm", elements, h));
  for (int i = 0; i < static_cast<int>(s.layers); ++i) {
    const std::string layer = fmt::format("bert.encoder.layer.{}.", i);
    for (const char* role : {"query", "key", "value"})
      ops.push_back(linear(layer + "attention.self." + role, s.seq, h, h));
    ops.push_back(
        attention(layer + "attention.self",
                  {.heads = s.heads, .queries = s.seq, .keys = s.seq, .dim = h / s.heads, .fused = s.fused_attention}));
    ops.push_back(linear(layer + "attention.output.dense", s.seq, h, h));
    ops.push_back(elementwise(layer, "add", elements, 2, 0));
    ops.push_back(norm(layer + "attention.output.LayerNorm", elements, h));
    ops.push_back(linear(layer + "intermediate.dense", s.seq, h, 4 * h));
    ops.push_back(elementwise(layer, "gelu", 4 * elements));
    ops.push_back(linear(layer + "output.dense", s.seq, 4 * h, h));
    ops.push_back(elementwise(layer, "add", elements, 2, 0));
    ops.push_back(norm(layer + "output.LayerNorm", elements, h));
  }
  ops.push_back(linear("bert.pooler.dense", 1, h, h));
  ops.push_back(elementwise("bert.pooler", "tanh", h));
  ops.push_back(linear("classifier", 1, h, 2));
  ops.push_back(cross_entropy(1, 2));
  work.assumptions.push_back({Basis::assumed, "no padding: every sequence has its full length; no dropout"});
  note_attention(work, s);
  return work;
}

Workload lstm_lm(std::string name, const LstmShape& s) {
  Workload work = text_workload(std::move(name), s.seq);
  auto& ops = work.ops;
  ops.push_back(embedding("embedding", s.seq, s.vocab, s.embedding));
  for (int i = 0; i < static_cast<int>(s.layers); ++i)
    ops.push_back(
        rnn("lstm", {.gates = 4, .inputs = i == 0 ? s.embedding : s.hidden, .hidden = s.hidden, .steps = s.seq}));
  ops.push_back(linear("head", s.seq, s.hidden, s.vocab));
  ops.push_back(cross_entropy(s.seq, s.vocab));
  work.assumptions.push_back({Basis::assumed, "the weights of a recurrent layer are read from memory once a pass"});
  return work;
}

}  // namespace hpqf::cost
