// The run folder before the first step: nothing of it stays behind when the run cannot start.
#pragma once
#include <string>

namespace hpqf::app {

// "runs/resnet20-20240131-235959", not existing yet.
std::string default_out(const std::string& model);

class OutFolder {
 public:
  // Error: `path` exists and is no folder, or holds files and `resume` is off; it has no config.json and `resume` is
  // on. Creates nothing.
  OutFolder(std::string path, bool resume);
  ~OutFolder();  // removes what was created, unless keep() was called
  OutFolder(const OutFolder&) = delete;
  OutFolder& operator=(const OutFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void create();
  void keep() { ours_ = false; }

 private:
  std::string path_;
  bool resume_;
  bool ours_ = false;      // create() was called and nothing worth keeping is in it
  std::string outermost_;  // the folder highest up that create() made; "" when all were there
};

}  // namespace hpqf::app
