#include "hpqf/cost/figure.h"

namespace hpqf::cost {

const char* name(Basis basis) {
  switch (basis) {
    case Basis::measured:
      return "measured";
    case Basis::quoted:
      return "quoted";
    case Basis::modelled:
      return "modelled";
    case Basis::assumed:
      return "assumed";
    case Basis::given:
      return "given";
  }
  return "";
}

}  // namespace hpqf::cost
