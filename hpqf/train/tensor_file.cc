#include "hpqf/train/tensor_file.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/plan/json.h"

namespace hpqf::train {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data is copied as it lies in memory");
using plan::Json;

constexpr size_t kLengthBytes = 8;
constexpr std::string_view kHeaderSum = "\"header_crc32\":\"";
constexpr std::string_view kNoSum = "00000000";

struct TypeName {
  at::ScalarType type;
  const char* name;
};
constexpr std::array kTypes{TypeName{at::kFloat, "F32"},
                            TypeName{at::kDouble, "F64"},
                            TypeName{at::kHalf, "F16"},
                            TypeName{at::kBFloat16, "BF16"},
                            TypeName{at::kLong, "I64"},
                            TypeName{at::kInt, "I32"},
                            TypeName{at::kShort, "I16"},
                            TypeName{at::kChar, "I8"},
                            TypeName{at::kByte, "U8"},
                            TypeName{at::kBool, "BOOL"},
                            TypeName{at::kFloat8_e4m3fn, "F8_E4M3"},
                            TypeName{at::kFloat8_e5m2, "F8_E5M2"}};

std::string crc_text(std::string_view bytes) {
  return fmt::format("{:08x}", crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

[[noreturn]] void refuse(const std::string& path, const std::string& wrong) {
  throw Error(fmt::format("to read {}", path), fmt::format("a whole, unedited file; {}", wrong),
              "use an older checkpoint, or the original of this file");
}

at::Tensor storable(const NamedTensor& t) {
  if (!t.tensor.defined() || t.tensor.layout() != at::kStrided || t.tensor.is_quantized()) {
    throw Error(fmt::format("to store tensor '{}'", t.name), "defined, dense, unquantised tensors", "convert it first");
  }
  return t.tensor.detach().cpu().contiguous().resolve_neg();
}

const char* type_name(const NamedTensor& t) {
  for (const TypeName& known : kTypes) {
    if (known.type == t.tensor.scalar_type()) return known.name;
  }
  throw Error(fmt::format("to store tensor '{}' of type {}", t.name, c10::toString(t.tensor.scalar_type())),
              "real floating point, integer and bool types", "convert it first");
}

std::string_view bytes_of(const at::Tensor& t) { return {static_cast<const char*>(t.const_data_ptr()), t.nbytes()}; }

// The header's checksum is that of the header with this text in its place; quotes inside strings are escaped, so the
// pattern cannot occur anywhere else.
std::string without_sum(std::string header, size_t at) { return header.replace(at, kNoSum.size(), kNoSum); }

struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> shape;
  size_t begin, end;
};

Entry parse_entry(const std::string& name, const Json& value, const std::string& path) {
  const plan::JsonObject object(value, fmt::format("{}: tensor '{}'", path, name));
  object.allow({"dtype", "shape", "data_offsets"});
  const std::string type = object.text("dtype");
  const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeName& t) { return t.name == type; });
  if (known == kTypes.end()) refuse(path, fmt::format("tensor '{}' has the unknown type {}", name, type));
  Entry entry{.name = name, .type = known->type, .shape = {}, .begin = 0, .end = 0};
  size_t bytes = c10::elementSize(entry.type);
  for (const Json& size : object.array("shape")) {
    if (!size.is_number_unsigned()) refuse(path, fmt::format("the shape of tensor '{}' is no list of sizes", name));
    entry.shape.push_back(size.get<int64_t>());
    if (__builtin_mul_overflow(bytes, size.get<size_t>(), &bytes) || entry.shape.back() < 0) {
      refuse(path, fmt::format("the shape of tensor '{}' is impossible", name));
    }
  }
  const Json& offsets = object.array("data_offsets");
  if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    refuse(path, fmt::format("tensor '{}' has no pair of data_offsets", name));
  }
  entry.begin = offsets[0].get<size_t>();
  entry.end = offsets[1].get<size_t>();
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    refuse(path, fmt::format("tensor '{}' has {} bytes by its shape, but not by its offsets", name, bytes));
  }
  return entry;
}

at::Tensor make_tensor(const Entry& entry, std::string_view bytes) {
  at::Tensor t = at::empty(entry.shape, entry.type);
  if (!bytes.empty()) std::memcpy(t.data_ptr(), bytes.data(), bytes.size());
  return t;
}

// Schema and version come before the checksums: a newer version may place them elsewhere.
void check_metadata(const Json& header, const std::string& path, std::string_view schema, int newest_version) {
  const auto metadata = header.find("__metadata__");
  const bool ours = metadata != header.end() && metadata->is_object() && metadata->value("schema", Json()) == schema;
  if (!ours) refuse(path, fmt::format("it does not carry the schema {}", schema));
  const plan::JsonObject object(*metadata, path + ": __metadata__");
  const std::string version = object.text("version");
  int number = 0;
  for (const char c : version) number = c >= '0' && c <= '9' && number < 100000 ? number * 10 + (c - '0') : 1000000;
  if (number < 1 || number > newest_version) {
    throw Error(fmt::format("to read {}, version {} of {}", path, version, schema),
                fmt::format("versions 1 to {}", newest_version),
                "read it with the release that wrote it, or a newer one");
  }
}

}  // namespace

const at::Tensor* TensorFile::find(std::string_view name) const {
  for (const NamedTensor& t : tensors) {
    if (t.name == name) return &t.tensor;
  }
  return nullptr;
}

void write_tensor_file(const std::string& path, const TensorFile& file) {
  Json header = Json::object(), sums = Json::object();
  header["__metadata__"] = Json::object();  // first in the file
  std::vector<at::Tensor> data;
  size_t offset = 0;
  for (const NamedTensor& t : file.tensors) {
    if (header.contains(t.name))
      throw Error(fmt::format("to store '{}' twice", t.name), "one tensor of a name", "rename one");
    data.push_back(storable(t));
    const std::string_view bytes = bytes_of(data.back());
    header[t.name] = {{"dtype", type_name(t)},
                      {"shape", data.back().sizes().vec()},
                      {"data_offsets", {offset, offset + bytes.size()}}};
    sums[t.name] = crc_text(bytes);
    offset += bytes.size();
  }
  // Only now: an ordered object keeps its values in a vector, which moves while it grows.
  Json& metadata = header["__metadata__"];
  for (const auto& [key, value] : file.metadata) metadata[key] = value;
  metadata["crc32"] = sums.dump();
  metadata["header_crc32"] = kNoSum;

  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data starts aligned
  text.replace(text.find(kHeaderSum) + kHeaderSum.size(), kNoSum.size(), crc_text(text));

  std::string content(kLengthBytes, '\0');
  content.reserve(kLengthBytes + text.size() + offset);
  const uint64_t length = text.size();
  std::memcpy(content.data(), &length, kLengthBytes);
  content += text;
  for (const at::Tensor& t : data) content += bytes_of(t);
  base::atomic_write(path, content);
}

TensorFile read_tensor_file(const std::string& path, std::string_view schema, int newest_version) {
  const std::string content = base::read_file(path);
  uint64_t length = 0;
  if (content.size() < kLengthBytes + 2) refuse(path, fmt::format("it has only {} bytes", content.size()));
  std::memcpy(&length, content.data(), kLengthBytes);
  if (content[kLengthBytes] != '{') refuse(path, "it is no safetensors file");
  if (length > content.size() - kLengthBytes) {
    refuse(path,
           fmt::format("it is truncated inside its header ({} of {} bytes)", content.size() - kLengthBytes, length));
  }
  const std::string text = content.substr(kLengthBytes, length);
  const std::string_view data = std::string_view(content).substr(kLengthBytes + length);
  const Json header = plan::parse_json(text, path + ": header");
  if (!header.is_object()) refuse(path, "its header is no JSON object");
  check_metadata(header, path, schema, newest_version);

  const plan::JsonObject metadata(header["__metadata__"], path + ": __metadata__");
  const size_t at = text.find(kHeaderSum);
  if (at == std::string::npos || metadata.text("header_crc32") != crc_text(without_sum(text, at + kHeaderSum.size()))) {
    refuse(path, "the checksum of its header is wrong: it was edited or damaged");
  }
  const Json sum_table = plan::parse_json(metadata.text("crc32"), path + ": crc32");
  const plan::JsonObject sums(sum_table, path + ": crc32");

  TensorFile file;
  for (const auto& [key, value] : header["__metadata__"].items()) {
    if (key != "crc32" && key != "header_crc32") file.metadata[key] = metadata.text(key);
  }
  size_t offset = 0;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    const Entry entry = parse_entry(name, value, path);
    if (entry.begin != offset) refuse(path, fmt::format("tensor '{}' does not start where the one before ends", name));
    if (entry.end > data.size()) {
      refuse(path, fmt::format("it is truncated: tensor '{}' ends at byte {} of the data, there are {}", name,
                               entry.end, data.size()));
    }
    offset = entry.end;
    const std::string_view bytes = data.substr(entry.begin, entry.end - entry.begin);
    if (sums.text(name) != crc_text(bytes)) refuse(path, fmt::format("the checksum of tensor '{}' is wrong", name));
    file.tensors.push_back({name, make_tensor(entry, bytes)});
  }
  if (offset != data.size()) refuse(path, fmt::format("{} bytes follow its last tensor", data.size() - offset));
  return file;
}

}  // namespace hpqf::train
