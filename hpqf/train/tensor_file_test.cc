#include "hpqf/train/tensor_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>

#include "hpqf/base/file.h"
#include "hpqf/train/fixtures_test.h"

namespace hpqf::train {
namespace {

constexpr const char* kSchema = "hpqf.test";

TensorFile sample() {
  TensorFile file{
      .metadata = {{"schema", kSchema}, {"version", "1"}, {"note", "quotes \" and \"header_crc32\":\"00000000\""}},
      .tensors = {}};
  const float values[] = {0.f, -0.f, 1e-45f, 3.4e38f, std::numeric_limits<float>::infinity(), std::nanf("")};
  file.tensors.push_back({"floats", torch::from_blob(const_cast<float*>(values), {2, 3}).clone()});
  file.tensors.push_back({"transposed", torch::arange(12, at::kDouble).reshape({3, 4}).t()});
  file.tensors.push_back({"empty", torch::zeros({0, 5})});
  file.tensors.push_back({"scalar", torch::full({}, 7, at::kLong)});
  file.tensors.push_back({"half", torch::full({3}, 1.5, at::kHalf)});
  file.tensors.push_back({"bf16", torch::full({1}, 1.5, at::kBFloat16)});
  file.tensors.push_back({"fp8", torch::full({5}, 1.5).to(at::kFloat8_e4m3fn)});
  file.tensors.push_back({"flags", torch::tensor({true, false, true})});
  file.tensors.push_back({"bytes", torch::arange(7, at::kByte)});
  return file;
}

std::string bits(const at::Tensor& t) {
  const at::Tensor c = t.contiguous();
  return {static_cast<const char*>(c.const_data_ptr()), c.nbytes()};
}

TEST(TensorFile, RoundTripsBitForBit) {
  const Folder folder;
  const TensorFile written = sample();
  write_tensor_file(folder / "a", written);
  const TensorFile read = read_tensor_file(folder / "a", kSchema, 1);
  EXPECT_EQ(read.metadata, written.metadata);
  ASSERT_EQ(read.tensors.size(), written.tensors.size());
  for (size_t i = 0; i < read.tensors.size(); ++i) {
    const at::Tensor &a = written.tensors[i].tensor, &b = read.tensors[i].tensor;
    EXPECT_EQ(read.tensors[i].name, written.tensors[i].name);
    EXPECT_EQ(a.scalar_type(), b.scalar_type());
    EXPECT_EQ(a.sizes(), b.sizes());
    EXPECT_EQ(bits(a), bits(b)) << read.tensors[i].name;
  }
  EXPECT_EQ(read.find("scalar")->item<int64_t>(), 7);
  EXPECT_EQ(read.find("nothing"), nullptr);
}

// The layout as the format's own page gives it, read without the code under test.
TEST(TensorFile, IsSafetensors) {
  const Folder folder;
  write_tensor_file(folder / "a", {{{"schema", kSchema}, {"version", "1"}}, {{"x", torch::tensor({1.f, 2.f})}}});
  const std::string content = base::read_file(folder / "a");
  uint64_t length;
  std::memcpy(&length, content.data(), 8);
  EXPECT_EQ(length % 8, 0);
  ASSERT_EQ(content.size(), 8 + length + 8);
  const std::string header = content.substr(8, length);
  EXPECT_NE(header.find(R"("x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), std::string::npos) << header;
  const float expected[] = {1, 2};
  EXPECT_EQ(0, std::memcmp(content.data() + 8 + length, expected, 8));
}

// Every byte matters: a file cut anywhere, or with any bit turned, is refused. (Turned spaces after the header's JSON
// included.)
TEST(TensorFile, EveryCutAndEveryTurnedBitIsRefused) {
  const Folder folder;
  TensorFile file = sample();
  write_tensor_file(folder / "a", file);
  const std::string good = base::read_file(folder / "a");
  for (size_t size = 0; size < good.size(); size += 1 + size / 64) {
    base::atomic_write(folder / "b", std::string_view(good).substr(0, size));
    EXPECT_THROW(read_tensor_file(folder / "b", kSchema, 1), Error) << "cut to " << size;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 1 << (at % 8);
    std::ofstream(folder / "b", std::ios::binary) << bad;
    EXPECT_THROW(read_tensor_file(folder / "b", kSchema, 1), Error) << "byte " << at << " of " << good.size();
  }
  base::atomic_write(folder / "b", good + "x");
  EXPECT_ERROR(read_tensor_file(folder / "b", kSchema, 1), "1 bytes follow");
}

TEST(TensorFile, ErrorsNameWhatIsWrong) {
  const Folder folder;
  write_tensor_file(folder / "a", sample());
  std::string content = base::read_file(folder / "a");
  content.back() ^= 1;
  base::atomic_write(folder / "b", content);
  EXPECT_ERROR(read_tensor_file(folder / "b", kSchema, 1), "checksum of tensor 'bytes'");
  base::atomic_write(folder / "b", std::string_view(content).substr(0, content.size() - 3));
  EXPECT_ERROR(read_tensor_file(folder / "b", kSchema, 1), "truncated: tensor 'bytes'");
  EXPECT_ERROR(read_tensor_file(folder / "a", "hpqf.other", 1), "schema hpqf.other");
  TensorFile newer = sample();
  newer.metadata["version"] = "2";
  write_tensor_file(folder / "b", newer);
  EXPECT_ERROR(read_tensor_file(folder / "b", kSchema, 1), "version 2");
  EXPECT_NO_THROW(read_tensor_file(folder / "b", kSchema, 2));
  base::atomic_write(folder / "b", "this is some other file, of no particular format");
  EXPECT_ERROR(read_tensor_file(folder / "b", kSchema, 1), "no safetensors file");
  EXPECT_ERROR(read_tensor_file(folder / "missing", kSchema, 1), "missing");
  EXPECT_ERROR(write_tensor_file(folder / "c", {{}, {{"x", torch::ones(1)}, {"x", torch::ones(1)}}}), "twice");
  EXPECT_ERROR(write_tensor_file(folder / "c", {{}, {{"x", torch::ones({2, 2}).to_sparse()}}}), "'x'");
  EXPECT_ERROR(write_tensor_file(folder / "none/c", sample()), "none");
  EXPECT_FALSE(std::filesystem::exists(folder / "c"));
}

// A writer killed at a random moment leaves the old file or the new one.
TEST(TensorFile, KilledWritesLeaveAWholeFile) {
  const Folder folder;
  const TensorFile file{{{"schema", kSchema}, {"version", "1"}}, {{"x", torch::zeros({300000})}}};
  write_tensor_file(folder / "a", file);
  for (int round = 0; round < 12; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) write_tensor_file(folder / "a", file);
    }
    usleep(3000 + 2700 * round);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_NO_THROW(read_tensor_file(folder / "a", kSchema, 1));
  }
}

}  // namespace
}  // namespace hpqf::train
