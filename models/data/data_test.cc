#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "hpqf/base/error.h"
#include "models/data/bible.h"
#include "models/data/dataset.h"
#include "models/data/idx.h"
#include "models/data/image_data.h"
#include "models/data/lzw.h"
#include "models/data/read_file.h"
#include "models/data/verses.h"
#include "models/data/word_tokens.h"

namespace hpqf::models {
namespace {

namespace fs = std::filesystem;

class Data : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("hpqf_data_test_" + std::to_string(getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& bytes) {
    const fs::path path = directory_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  std::string write_gz(const std::string& name, const std::string& bytes) {
    const fs::path path = directory_ / name;
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path.string();
  }
  static std::string idx(const std::vector<uint32_t>& sizes, const std::string& data, char type = 8) {
    std::string bytes{'\0', '\0', type, static_cast<char>(sizes.size())};
    for (uint32_t size : sizes) {
      for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(size >> shift));
    }
    return bytes + data;
  }
  void write_mnist(const std::string& labels = std::string("\1\2\3", 3)) {
    for (const char* split : {"train", "t10k"}) {
      write_gz(std::string(split) + "-images-idx3-ubyte.gz", idx({3, 2, 2}, "abcdefghijkl"));
      write(std::string(split) + "-labels-idx1-ubyte", idx({static_cast<uint32_t>(labels.size())}, labels));
    }
  }

  fs::path directory_;
};

// The Error of `action`; it must name `file` and say `what`.
template <class Action>
void expect_error(Action action, const std::string& file, const std::string& what) {
  try {
    action();
    FAIL() << "no Error: " << what;
  } catch (const Error& e) {
    EXPECT_NE(e.asked().find(file), std::string::npos) << e.what();
    EXPECT_NE(e.allowed().find(what), std::string::npos) << e.what();
    EXPECT_FALSE(e.todo().empty());
  }
}

TEST_F(Data, IdxRoundTripRawAndGzip) {
  const std::string bytes = idx({2, 3}, "abcdef");
  for (const std::string& path : {write("raw", bytes), write_gz("packed", bytes)}) {
    const at::Tensor t = read_idx(path, 2);
    EXPECT_EQ(t.sizes().vec(), (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(t[1][2].item<int>(), 'f');
  }
}

TEST_F(Data, IdxCorruptionIsNamed) {
  const std::string good = idx({2, 3}, "abcdef");
  const auto refuses = [&](const std::string& bytes, const std::string& what) {
    const std::string path = write("bad-idx", bytes);
    expect_error([&] { read_idx(path, 2); }, "bad-idx", what);
  };
  refuses("", "this file has 0");
  refuses(good.substr(0, 3), "this file has 3");
  refuses("PK\3\4" + good, "begins with 50 4b");
  refuses(idx({2, 3}, "abcdef", 0x0d), "type 0x0d");
  refuses(idx({6}, "abcdef"), "2 dimensions; this file has 1");
  refuses(good.substr(0, 9), "a header of 12 bytes");
  refuses(good.substr(0, good.size() - 1), "6 bytes of data for 2 x 3; this file has 5");
  refuses(good + "x", "this file has 7");
  refuses(idx({0xffffffff, 0xffffffff}, "abcdef"), "this file has 6");
}

TEST_F(Data, IdxDimensionsThatOverflowAreRefused) {
  const std::string path = write("huge", idx({0x80000000u, 0x80000000u, 0x80000000u}, ""));
  expect_error([&] { read_idx(path, 3); }, "huge", "dimensions that fit in memory");
}

TEST_F(Data, DamagedGzipIsNamed) {
  const std::string path = write_gz("packed.gz", idx({1000, 100}, std::string(100000, 'x')));
  std::string bytes;
  {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  write("cut.gz", bytes.substr(0, bytes.size() / 2));
  expect_error([&] { read_idx((directory_ / "cut.gz").string(), 2); }, "cut.gz", "damaged");
  bytes[bytes.size() - 6] ^= 1;  // the crc
  write("crc.gz", bytes);
  expect_error([&] { read_idx((directory_ / "crc.gz").string(), 2); }, "crc.gz", "damaged");
}

TEST_F(Data, MissingFilesAndDirectories) {
  expect_error([&] { read_file((directory_ / "none").string()); }, "none", "No such file");
  expect_error([&] { read_file(directory_.string()); }, directory_.string(), "a file");
}

TEST_F(Data, LabelsMustMatchImagesAndRange) {
  const std::string images = write("images", idx({3, 2, 2}, "abcdefghijkl"));
  const auto labels = [&](const std::string& bytes) {
    return write("labels", idx({static_cast<uint32_t>(bytes.size())}, bytes));
  };
  const std::string two = labels("\1\2");
  expect_error([&] { read_labelled_images(images, two, 10); }, "labels", "each of the 3 images; this file has 2");
  const std::string high = labels("\1\2\12");
  expect_error([&] { read_labelled_images(images, high, 10); }, "labels", "label 2 of this file is 10");
  EXPECT_EQ(read_labelled_images(images, labels("\1\2\11"), 10).labels[2].item<int>(), 9);
  const std::string none = write("no-images", idx({0, 2, 2}, ""));
  expect_error([&] { read_labelled_images(none, two, 10); }, "no-images", "at least one image");
}

TEST_F(Data, MnistFolder) {
  write_mnist();
  const Dataset d = load_dataset("mnist-idx:" + directory_.string(), {.limit = 2});
  EXPECT_EQ(d.train.data.sizes().vec(), (std::vector<int64_t>{2, 1, 2, 2}));
  EXPECT_EQ(d.validation.size(), 3);
  EXPECT_EQ(d.prepare_target(d.train.target).scalar_type(), at::kLong);
  const at::Tensor all = d.prepare_data(d.validation.data);
  EXPECT_NEAR(all.mean().item<double>(), 0, 1e-4);
  EXPECT_NEAR(all.std(/*unbiased=*/false).item<double>(), 1, 1e-4);
  fs::remove(directory_ / "t10k-labels-idx1-ubyte");
  expect_error([&] { load_dataset("mnist-idx:" + directory_.string()); }, directory_.string(),
               "t10k-labels-idx1-ubyte.gz; it has neither");
}

TEST_F(Data, MissingPackagesNameTheAptLine) {
  try {
    fashion_mnist((directory_ / "nowhere").string());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.todo(), "apt-get install dataset-fashion-mnist");
  }
  try {
    read_bible((directory_ / "nowhere").string());
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.todo().find("apt-get install bible-kjv-text"), std::string::npos);
  }
}

TEST_F(Data, UnknownSpecsListWhatExists) {
  for (const char* spec : {"cifar10", "", "text:", "mnist-idx", "fashion-mnist:x"}) {
    expect_error([&] { load_dataset(spec); }, spec, kDatasets);
  }
}

TEST_F(Data, FashionMnist) {
  if (!fs::exists(kFashionMnistDirectory)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const Dataset d = load_dataset("fashion-mnist");
  EXPECT_EQ(d.train.data.sizes().vec(), (std::vector<int64_t>{60000, 1, 28, 28}));
  EXPECT_EQ(d.validation.size(), 10000);
  EXPECT_NEAR(d.mean, 0.2860, 1e-4);  // the figures everybody uses for this data set
  EXPECT_NEAR(d.stddev, 0.3530, 1e-4);
  EXPECT_EQ(d.train.target.to(at::kLong).bincount().eq(6000).sum().item<int64_t>(), 10);
}

TEST_F(Data, TextWindows) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text.push_back(static_cast<char>(i % 251));
  const Dataset d = load_dataset("text:" + write("t", text), {.context = 8});
  ASSERT_EQ(d.train.size(), (950 - 1) / 8);
  ASSERT_EQ(d.validation.size(), (50 - 1) / 8);
  for (int64_t window : {int64_t{0}, d.train.size() - 1}) {
    for (int64_t t = 0; t < 8; ++t) {
      EXPECT_EQ(d.train.data[window][t].item<int>(), (window * 8 + t) % 251);
      EXPECT_EQ(d.train.target[window][t].item<int>(), (window * 8 + t + 1) % 251);
    }
  }
  EXPECT_EQ(d.validation.data[0][0].item<int>(), 950 % 251);
  EXPECT_EQ(load_dataset("text:" + write("t", text), {.context = 8, .limit = 3}).train.size(), 3);
}

TEST_F(Data, TextThatIsTooShort) {
  for (const char* text : {"", "In the beginning"}) {
    const std::string path = write("short", text);
    expect_error([&] { load_dataset("text:" + path); }, "short", "at least 2580 bytes");
  }
  EXPECT_EQ(text_dataset("just enough", std::string(2580, 'a'), {}).validation.size(), 1);
  EXPECT_THROW(text_dataset("one less", std::string(2579, 'a'), {}), Error);
}

TEST_F(Data, Bible) {
  if (!fs::exists(kBiblePath)) GTEST_SKIP() << "bible-kjv-text is not installed";
  const std::string text = read_bible();
  EXPECT_NE(text.find("Ge1:1 In the beginning God created the heaven and the earth.\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("Rev22:21 The grace of our Lord Jesus Christ be with you all. Amen.\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 31103);  // 31102 verses and a title
  EXPECT_EQ(crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())),
            4206344403u);  // of the same windows unpacked by gzip(1)
}

TEST_F(Data, DamagedBible) {
  expect_error([&] { read_bible(write("a", "hello")); }, "a'", "does not begin with");
  expect_error([&] { read_bible(write("b", "EC02Compressed Data File")); }, "b'", "ends at byte 24");
}

// Independent oracle: gzip(1) reads compress(1) streams.
TEST_F(Data, LzwAgreesWithGzip) {
  if (!fs::exists(kBiblePath)) GTEST_SKIP() << "needs the streams of bible-kjv-text";
  const std::string file = read_file(kBiblePath);
  const std::string codes = file.substr(0x173, 0x65e5 - 0x173);
  const std::string path = write("w.Z", "\x1f\x9d\x90" + codes);
  FILE* pipe = popen(("gzip -dc " + path).c_str(), "r");
  std::string expected(1 << 17, '\0');
  expected.resize(fread(expected.data(), 1, expected.size(), pipe));
  pclose(pipe);
  EXPECT_EQ(lzw_unpack(codes), expected);
}

TEST_F(Data, LzwEdges) {
  EXPECT_EQ(lzw_unpack(""), "");
  EXPECT_EQ(lzw_unpack(std::string("A\0", 2)), "A");
  // 'A' then the code that is just being made (257): the case in which the decoder is one entry behind.
  EXPECT_EQ(lzw_unpack(std::string("\x41\x02\x02", 3)), "AAA");
  EXPECT_THROW(lzw_unpack(std::string("\x41\xfe\x03", 3)), std::runtime_error);
}

TEST(Words, ArePartedByAllThatIsNoLetter) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of(""), Words{});
  EXPECT_EQ(words_of("  1:2 -- "), Words{});
  EXPECT_EQ(words_of("And God said, Let there be light."),
            (Words{"and", "god", "said", "let", "there", "be", "light"}));
  EXPECT_EQ(words_of("A man's  'word' O' th\xc3\xa9"), (Words{"a", "man's", "word", "o", "th\xc3\xa9"}));
}

TEST(Words, VocabularyTakesTheMostFrequentAndThenTheAlphabet) {
  const WordTokens tokens({"b a b", "c c b d"}, 3 + 3);  // b 3, c 2, then a before d
  EXPECT_EQ(tokens.size(), 6);
  EXPECT_EQ(tokens.encode("a b c d e", 7), (std::vector<int16_t>{2, 5, 3, 4, 1, 1, 0}));
  EXPECT_EQ(tokens.encode("b b b", 3), (std::vector<int16_t>{2, 3, 3}));
  EXPECT_EQ(tokens.encode("", 2), (std::vector<int16_t>{2, 0}));
  EXPECT_EQ(WordTokens({"x"}, 100).size(), 4);
  EXPECT_THROW(WordTokens({"x"}, 3), Error);
  EXPECT_THROW(WordTokens({"x"}, 40000), Error);
}

std::string small_bible(int books) {
  std::string text = "A heading without a verse\n";
  for (int b = 0; b < books; ++b)
    for (int v = 1; v <= 5; ++v)
      text += fmt::format("{}Bk{}:{} Word{} and: more\n", b % 3 + 1, std::string(size_t(b / 3), 'x') + "1", v, b);
  return text;
}

TEST(Verses, AreCutFromTheirPlacesAndLabelledByTheirBook) {
  const Dataset d = verses_dataset(small_bible(66), {.context = 6});
  EXPECT_EQ(d.task, Task::sentences);
  EXPECT_EQ(d.classes, 8);
  EXPECT_EQ(d.train.size() + d.validation.size(), 66 * 5);
  EXPECT_EQ(d.validation.size(), 33);
  EXPECT_EQ(d.train.target[0].item<int64_t>(), 0);
  EXPECT_EQ(d.train.target[-1].item<int64_t>(), 7);         // Revelation is a class of its own
  EXPECT_EQ(d.validation.target.max().item<int64_t>(), 6);  // of its five verses none is a tenth
  EXPECT_EQ(d.train.data[0][0].item<int64_t>(), WordTokens::kClass);
  EXPECT_EQ(d.train.data[0][4].item<int64_t>(), WordTokens::kPadding);  // [CLS] word and more
  EXPECT_EQ(d.prepare_data(d.train.data).scalar_type(), at::kLong);
  EXPECT_THROW(verses_dataset(small_bible(65), {}), Error);
  EXPECT_THROW(verses_dataset(small_bible(66), {.context = 1}), Error);
}

TEST(Verses, OfTheInstalledBible) {
  if (!fs::exists(kBiblePath)) GTEST_SKIP() << "needs bible-kjv-text";
  const Dataset d = load_dataset("verses", {.context = 64});
  EXPECT_EQ(d.train.size() + d.validation.size(), 31102);
  EXPECT_EQ(d.vocab, kVerseVocabulary);
  EXPECT_LT(d.train.data.eq(WordTokens::kUnknown).sum().item<double>(), 0.03 * d.train.data.ne(0).sum().item<double>());
  const at::Tensor sizes = d.train.target.to(at::kLong).bincount();
  EXPECT_EQ(sizes.numel(), 8);
  EXPECT_GT(sizes.min().item<int64_t>(), 300);
}

}  // namespace
}  // namespace hpqf::models
