// The bytes of TensorBoard files: checksums, records, messages.
#include <cstring>

#include "hpqf/observe/export/crc32c.h"
#include "hpqf/observe/export/protobuf.h"
#include "hpqf/observe/export/tensorboard.h"
#include "hpqf/observe/run/fixtures_test.h"

namespace hpqf::observe {
namespace {

// RFC 3720, B.4, and the check value of the CRC catalogue.
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char i = 0; i < 32; ++i) rising += i;
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
}

TEST(Protobuf, TheExamplesOfItsGuide) {
  ProtobufMessage varint, text, nested;
  varint.varint(1, 150);
  EXPECT_EQ(varint.text(), std::string("\x08\x96\x01"));
  text.bytes(2, "testing");
  EXPECT_EQ(text.text(), std::string("\x12\x07testing"));
  nested.message(3, varint);
  EXPECT_EQ(nested.text(), std::string("\x1a\x03\x08\x96\x01"));
  ProtobufMessage fixed;
  fixed.fixed64(1, 1.0);
  fixed.fixed32(2, 1.0f);
  EXPECT_EQ(fixed.text(), std::string("\x09\0\0\0\0\0\0\xf0\x3f\x15\0\0\x80\x3f", 14));
  ProtobufMessage large;
  large.varint(1, ~uint64_t{0});
  EXPECT_EQ(large.text(), std::string("\x08") + std::string(9, '\xff') + "\x01");
}

TEST(TfRecord, Frame) {
  const std::string record = tfrecord("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "abc");
  const auto stored = [&](size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, record.data() + at, 4);
    return value;
  };
  // Undo the mask: rotate by 15 after taking the constant away.
  const auto unmasked = [](uint32_t masked) {
    const uint32_t rotated = masked - 0xa282ead8u;
    return rotated >> 17 | rotated << 15;
  };
  EXPECT_EQ(unmasked(stored(8)), crc32c(record.substr(0, 8)));
  EXPECT_EQ(unmasked(stored(15)), crc32c("abc"));
}

}  // namespace
}  // namespace hpqf::observe
