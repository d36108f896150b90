#include "hpqf/observe/run/lines.h"

#include "hpqf/observe/run/fixtures_test.h"
#include "hpqf/observe/run/utf8.h"

namespace hpqf::observe {
namespace {

struct Read {
  LinesRead counts;
  std::vector<std::string> lines;
};

Read read(const std::string& text) {
  const Folder folder;
  folder.write("f", text);
  Read out;
  out.counts = for_each_line(folder / "f", [&](std::string_view line) { out.lines.emplace_back(line); });
  return out;
}

TEST(Lines, WholeLinesOnly) {
  const Read r = read("one\n\nthree\ntorn");
  EXPECT_EQ(r.lines, (std::vector<std::string>{"one", "", "three"}));
  EXPECT_EQ(r.counts.lines, 3);
  EXPECT_TRUE(r.counts.torn);
  EXPECT_FALSE(read("one\n").counts.torn);
  EXPECT_EQ(read("").counts.lines, 0);
  EXPECT_FALSE(read("").counts.torn);
}

// Around the 64 KiB in which the file is read.
TEST(Lines, LinesOfEveryLength) {
  for (const size_t size : {size_t{65534}, size_t{65535}, size_t{65536}, size_t{65537}, size_t{200000}, kLongestLine}) {
    const std::string line(size, 'x');
    const Read r = read("a\n" + line + "\nb\n");
    ASSERT_EQ(r.lines.size(), 3u) << size;
    EXPECT_TRUE(r.lines[1] == line) << size;
    EXPECT_EQ(r.lines[2], "b");
  }
}

TEST(Lines, TooLongOnesAreLeftOutAndCounted) {
  const Read r = read("a\n" + std::string(kLongestLine + 1, 'x') + "\nb\n" + std::string(3 * kLongestLine, 'y'));
  EXPECT_EQ(r.lines, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(r.counts.too_long, 1);
  EXPECT_TRUE(r.counts.torn);
}

TEST(Lines, AFileThatCannotBeRead) {
  EXPECT_HAS(error_of([] { for_each_line("/nowhere/f", [](std::string_view) {}); }), "/nowhere/f");
  const Folder folder;
  EXPECT_HAS(error_of([&] { for_each_line(folder.path(), [](std::string_view) {}); }), folder.path()) << "a folder";
}

TEST(Utf8, OnlyWhatTheStandardAllowsStays) {
  for (const char* good :
       {"", "plain", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(valid_utf8(good), good);
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a" + bad + "b");
  EXPECT_EQ(valid_utf8("\xc0\x80"), bad + bad) << "overlong";
  EXPECT_EQ(valid_utf8("\xe0\x80\xaf"), bad + bad + bad) << "overlong";
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), bad + bad + bad) << "a surrogate";
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "above U+10FFFF";
  EXPECT_EQ(valid_utf8("\xe2\x82"), bad + bad) << "cut";
}

}  // namespace
}  // namespace hpqf::observe
