// The definition of the activations, in double precision, element by element.
#pragma once
#include "hpqf/kernels/activation.h"

namespace hpqf::kernels::ref {

double activation(Activation function, double x);
double activation_gradient(Activation function, double x);

void activation_forward(const ActivationForward& a, int64_t first, int64_t last);
void activation_backward(const ActivationBackward& a, int64_t first, int64_t last);

}  // namespace hpqf::kernels::ref
