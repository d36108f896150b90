// Protocol Buffers wire format, the four kinds of fields that TensorBoard events need.
// https://protobuf.dev/programming-guides/encoding
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace hpqf::observe {

class ProtobufMessage {
 public:
  void varint(uint32_t field, uint64_t value) {
    key(field, 0);
    put_varint(value);
  }
  void fixed64(uint32_t field, double value) {
    key(field, 1);
    put_fixed(std::bit_cast<uint64_t>(value), 8);
  }
  void fixed32(uint32_t field, float value) {
    key(field, 5);
    put_fixed(std::bit_cast<uint32_t>(value), 4);
  }
  void bytes(uint32_t field, std::string_view value) {  // string, bytes or a message
    key(field, 2);
    put_varint(value.size());
    out_ += value;
  }
  void message(uint32_t field, const ProtobufMessage& value) { bytes(field, value.text()); }
  const std::string& text() const { return out_; }

 private:
  void key(uint32_t field, uint32_t wire) { put_varint(field << 3 | wire); }
  void put_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void put_fixed(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i));
  }
  std::string out_;
};

}  // namespace hpqf::observe
