// The safetensors layout, with checksums: 8 bytes little-endian header length, JSON header, raw little-endian data.
#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::train {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// Any safetensors reader opens these files; the checksums are strings in "__metadata__": "crc32" holds a JSON object of
// one CRC-32 per tensor, "header_crc32" that of the header with its own eight digits taken as zeros.
struct HPQF_API TensorFile {
  std::map<std::string, std::string> metadata;  // schema, version and what else the writer wants; not the checksums
  std::vector<NamedTensor> tensors;             // written in this order
  const at::Tensor* find(std::string_view name) const;
};

// Atomically (base/file.h). Tensors of any layout and device; written contiguous. Error: a name twice, a sparse or
// quantised tensor, a folder that cannot be written, a full disk.
HPQF_API void write_tensor_file(const std::string& path, const TensorFile& file);

// Reads and verifies all of it. `schema` must be metadata["schema"], and metadata["version"] at most `newest_version`.
// Error names what is wrong: not such a file, truncated (by how much), header edited, which tensor's checksum, too new.
HPQF_API TensorFile read_tensor_file(const std::string& path, std::string_view schema, int newest_version);

}  // namespace hpqf::train
