#include "hpqf/cost/workload.h"

namespace hpqf::cost {

double Workload::parameters() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.parameters;
  return sum - tied_parameters;
}

double Workload::forward_flops() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.flops;
  return sum;
}

double Workload::dgrad_flops() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.dgrad ? op.flops : 0;
  return sum;
}

double Workload::wgrad_flops() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.wgrad ? op.flops : 0;
  return sum;
}

}  // namespace hpqf::cost
