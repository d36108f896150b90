// A library that may not be there, loaded while the object lives.
#pragma once
#include <string>

namespace hpqf::device::machine {

class SharedLibrary {
 public:
  explicit SharedLibrary(const std::string& file);  // never throws; look at loaded()
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  bool loaded() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }  // of the loader

  // Null when the library has no such function. The caller knows its type.
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const char* name) const;
  void* handle_ = nullptr;
  std::string error_;
};

}  // namespace hpqf::device::machine
