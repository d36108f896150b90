// The one exception for a caller's mistakes. Numeric trouble (overflow, NaN, drift) is never an Error: it is an event.
#pragma once
#include <stdexcept>
#include <string>

#include "hpqf/base/export.h"

namespace hpqf {

// Three parts, always all three: what was asked, what is allowed, what to do.
class HPQF_API Error : public std::runtime_error {
 public:
  Error(std::string asked, std::string allowed, std::string todo)
      : std::runtime_error("asked:   " + asked + "\nallowed: " + allowed + "\nto do:   " + todo),
        asked_(std::move(asked)),
        allowed_(std::move(allowed)),
        todo_(std::move(todo)) {}
  const std::string& asked() const { return asked_; }
  const std::string& allowed() const { return allowed_; }
  const std::string& todo() const { return todo_; }

 private:
  std::string asked_, allowed_, todo_;
};

}  // namespace hpqf
