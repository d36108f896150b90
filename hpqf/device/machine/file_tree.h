// The files under / that describe a machine (/proc, /sys), seen through an interface: the detection reads a live
// machine, a recording of another one, or one made up for a test, and cannot tell which.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::device::machine {

// Paths have no leading slash: "proc/meminfo".
class HPQF_API FileTree {
 public:
  enum class Access : uint8_t { missing, denied, found };
  struct File {
    Access access = Access::missing;
    std::string text;
  };
  using Fields = std::map<std::string, std::string, std::less<>>;

  virtual ~FileTree() = default;
  virtual File read(const std::string& path) const = 0;                        // at most 64 KiB: more is not a fact
  virtual std::vector<std::string> list(const std::string& folder) const = 0;  // sorted names; none without the folder
  // "key : value" lines with one of `keys`, the first of each key; keys and values without blanks around them.
  virtual Fields fields(const std::string& path, const std::vector<std::string>& keys) const;

  // Of read(): the first line without blanks around it; a whole number. Nothing when there is none.
  std::optional<std::string> line(const std::string& path) const;
  std::optional<int64_t> number(const std::string& path) const;
};

// What lies on a disk under `root`: "/" is this machine.
class HPQF_API RootTree : public FileTree {
 public:
  explicit RootTree(std::string root = "/") : root_(std::move(root)) {}
  File read(const std::string& path) const override;
  std::vector<std::string> list(const std::string& folder) const override;

 private:
  std::string root_;
};

// A machine kept as the text of its files.
struct RecordedFiles {
  std::map<std::string, std::string> text;  // by path
  std::set<std::string> denied;             // there, but this user could not read them
  bool operator==(const RecordedFiles&) const = default;
};

class HPQF_API RecordedTree : public FileTree {
 public:
  explicit RecordedTree(RecordedFiles files) : files_(std::move(files)) {}
  File read(const std::string& path) const override;
  std::vector<std::string> list(const std::string& folder) const override;

 private:
  RecordedFiles files_;
};

// Passes another tree on and keeps what was read of it: of fields() only the lines asked for, so that a recording holds
// what the detection uses and no more.
class HPQF_API RecordingTree : public FileTree {
 public:
  explicit RecordingTree(const FileTree& source) : source_(source) {}
  File read(const std::string& path) const override;
  std::vector<std::string> list(const std::string& folder) const override { return source_.list(folder); }
  Fields fields(const std::string& path, const std::vector<std::string>& keys) const override;
  const RecordedFiles& files() const { return files_; }

 private:
  const FileTree& source_;
  mutable RecordedFiles files_;
};

HPQF_API std::string trimmed(std::string_view text);
HPQF_API std::optional<int64_t> to_integer(std::string_view text);  // all of it, decimal
HPQF_API std::vector<std::string> words(std::string_view text);

// The kernel's lists of CPUs and nodes: "0-3,8,10-11". Sorted, each once; what is no list gives what was read before
// it.
HPQF_API std::vector<int> parse_list(std::string_view text);

}  // namespace hpqf::device::machine
