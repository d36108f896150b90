// The dispatch key HPQF's kernels live on. One file knows which key that is.
#pragma once
#include <c10/core/DispatchKey.h>

namespace torch {
class Library;
}

namespace hpqf::engine {

// Chosen on the first attach: the first spare autocast key that no backend uses, or an Error naming the owners.
c10::DispatchKey key();

// Registers the kernels of all intercepted ops, once for the life of the process. They cost nothing on threads whose
// key is off. (Taking them away again would leave a thread with an open scope without a kernel for any op.)
void install();

}  // namespace hpqf::engine
