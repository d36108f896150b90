// A model as a list of ops: what a step of training has to compute for one sample.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/cost/figure.h"
#include "hpqf/cost/op.h"

namespace hpqf::cost {

struct HPQF_API Workload {
  std::string model;
  std::string sample;          // what one sample is: "image 3x224x224", "sequence of 512 tokens"
  double tokens = 0;           // in one sample; 0 for images
  double tied_parameters = 0;  // counted in two ops and stored once
  Figure dataset;              // samples in one epoch of the usual data set; 0: there is none
  std::vector<Op> ops;
  std::vector<Assumption> assumptions;

  double parameters() const;     // elements, tied ones once
  double forward_flops() const;  // per sample
  double dgrad_flops() const;
  double wgrad_flops() const;
  double training_flops() const { return forward_flops() + dgrad_flops() + wgrad_flops(); }
};

struct ImageShape {
  double size = 224, channels = 3, classes = 1000;
};
// He et al., "Deep Residual Learning for Image Recognition", 2015; 18 and 50 with the stride on the 3x3 convolution of
// a bottleneck, as torchvision has them. Layers have torchvision's names.
HPQF_API Workload resnet18(const ImageShape& image = {});
HPQF_API Workload resnet50(const ImageShape& image = {});
// For small images, section 4.2 of that paper, parameter-free shortcuts.
HPQF_API Workload resnet20(const ImageShape& image = {32, 3, 10});

struct TransformerShape {
  double layers = 0, hidden = 0, heads = 0, vocab = 0, seq = 0;
  bool tied_head = true;  // GPT: the output layer shares the token embedding
  double positions = 0;   // rows of the position table; 0: seq
  bool fused_attention = true;
  Causal causal = Causal::counted_full;  // GPT
};
// Decoder as GPT-2: pre-norm, learned positions, GELU, 4 x hidden in between (Radford et al., 2019).
HPQF_API Workload gpt(std::string name, const TransformerShape& shape);
// Encoder with pooler and a classifier of two labels (Devlin et al., 2018).
HPQF_API Workload bert(std::string name, const TransformerShape& shape);

struct LstmShape {
  double layers = 2, embedding = 128, hidden = 256, vocab = 256, seq = 128;
};
HPQF_API Workload lstm_lm(std::string name, const LstmShape& shape = {});

}  // namespace hpqf::cost
