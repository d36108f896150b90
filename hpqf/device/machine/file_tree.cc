#include "hpqf/device/machine/file_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <sstream>

namespace hpqf::device::machine {
namespace {

constexpr size_t kMostBytes = 64 * 1024;
constexpr int kMostCpus = 65536;  // a list with more is no list of CPUs

FileTree::Fields pick(std::string_view text, const std::vector<std::string>& keys) {
  FileTree::Fields found;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string key = trimmed(line.substr(0, colon));
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) continue;
    found.try_emplace(std::move(key), trimmed(line.substr(colon + 1)));
  }
  return found;
}

}  // namespace

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\0";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kBlank) - first + 1));
}

std::optional<int64_t> to_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::vector<std::string> words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> all;
  for (std::string word; stream >> word;) all.push_back(word);
  return all;
}

std::vector<int> parse_list(std::string_view text) {
  std::set<int> members;
  const std::string whole = trimmed(text);
  for (std::string_view rest = whole; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const size_t dash = part.find('-');
    const auto first = to_integer(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : to_integer(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) break;
    for (int64_t i = *first; i <= *last; ++i) members.insert(static_cast<int>(i));
  }
  return {members.begin(), members.end()};
}

FileTree::Fields FileTree::fields(const std::string& path, const std::vector<std::string>& keys) const {
  return pick(read(path).text, keys);
}

std::optional<std::string> FileTree::line(const std::string& path) const {
  const File file = read(path);
  if (file.access != Access::found) return std::nullopt;
  return trimmed(std::string_view(file.text).substr(0, file.text.find('\n')));
}

std::optional<int64_t> FileTree::number(const std::string& path) const {
  const auto text = line(path);
  return text ? to_integer(*text) : std::nullopt;
}

// By system calls: a stream does not say why a file of /sys could not be read (some open, and then refuse to be read).
FileTree::File RootTree::read(const std::string& path) const {
  const std::string full = root_ + "/" + path;
  const int fd = open(full.c_str(), O_RDONLY | O_CLOEXEC);
  auto failed = [] { return File{errno == EACCES || errno == EPERM ? Access::denied : Access::missing, ""}; };
  if (fd < 0) return failed();
  File file{Access::found, ""};
  char buffer[4096];
  while (file.text.size() < kMostBytes) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) file = failed();
    if (n <= 0) break;
    file.text.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return file;
}

std::vector<std::string> RootTree::list(const std::string& folder) const {
  std::error_code failed;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(root_ + "/" + folder, failed), end; !failed && entry != end;
       entry.increment(failed))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

FileTree::File RecordedTree::read(const std::string& path) const {
  if (files_.denied.count(path)) return {Access::denied, ""};
  const auto at = files_.text.find(path);
  return at == files_.text.end() ? File{} : File{Access::found, at->second};
}

std::vector<std::string> RecordedTree::list(const std::string& folder) const {
  const std::string prefix = folder + "/";
  std::set<std::string> names;
  auto add = [&](const std::string& path) {
    if (path.starts_with(prefix))
      names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
  };
  for (const auto& [path, text] : files_.text) add(path);
  for (const std::string& path : files_.denied) add(path);
  return {names.begin(), names.end()};
}

FileTree::File RecordingTree::read(const std::string& path) const {
  File file = source_.read(path);
  if (file.access == Access::found) files_.text[path] = file.text;
  if (file.access == Access::denied) files_.denied.insert(path);
  return file;
}

FileTree::Fields RecordingTree::fields(const std::string& path, const std::vector<std::string>& keys) const {
  Fields found = source_.fields(path, keys);
  std::string& text = files_.text[path];
  for (const auto& [key, value] : found) text += key + ": " + value + "\n";
  if (text.empty()) files_.text.erase(path);
  return found;
}

}  // namespace hpqf::device::machine
