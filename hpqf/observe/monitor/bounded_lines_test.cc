#include "hpqf/observe/monitor/bounded_lines.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "hpqf/base/error.h"

namespace hpqf::observe {
namespace {
namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::path(::testing::TempDir()) /
                  ("lines-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
  Folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file() const { return (path / "x.jsonl").string(); }
};

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines(1);
  for (char c : base::read_file(path)) {
    if (c != '\n') lines.back() += c;
    if (c == '\n') lines.emplace_back();
  }
  lines.pop_back();
  return lines;
}

std::string row(int step, const char* more = "") { return "{\"step\":" + std::to_string(step) + more + "}"; }

TEST(BoundedLines, StaysWithinItsBytesAndKeepsTheNewestAndTheMarked) {
  const Folder folder;
  BoundedLines lines(folder.file(), 8192, "alerts");
  for (int i = 1; i <= 20000; ++i) ASSERT_EQ(lines.append(row(i, i == 77 ? ",\"alerts\":1" : "")), "");
  EXPECT_LE(fs::file_size(folder.file()), 8192u);
  const auto kept = lines_of(folder.file());
  EXPECT_EQ(kept.back(), row(20000));
  EXPECT_EQ(kept[kept.size() - 2], row(19999));
  EXPECT_NE(std::find(kept.begin(), kept.end(), row(77, ",\"alerts\":1")), kept.end());
  EXPECT_EQ(kept.front(), row(1));
  EXPECT_GT(kept.size(), 100u);
}

TEST(BoundedLines, LinesOfOneStepStayTogether) {
  const Folder folder;
  BoundedLines lines(folder.file(), 4096);
  for (int i = 1; i <= 2000; ++i) {
    lines.append(row(i, ",\"a\":1"));
    lines.append(row(i, ",\"b\":1"));
  }
  int a = 0, b = 0;
  for (const std::string& line : lines_of(folder.file())) ++(line.find("\"a\"") != std::string::npos ? a : b);
  EXPECT_GT(a, 20);
  EXPECT_NEAR(a, b, 1);  // the border of the newest quarter may cut one step
}

TEST(BoundedLines, MarkedLinesAloneAreThinnedToo) {
  const Folder folder;
  BoundedLines lines(folder.file(), 4096, "step");
  for (int i = 1; i <= 5000; ++i) lines.append(row(i));
  EXPECT_LE(fs::file_size(folder.file()), 4096u);
}

TEST(BoundedLines, FailureIsSaidOnceAndNeverThrown) {
  const Folder folder;
  BoundedLines lines(folder.file() + "/no/such", 8192);
  const std::string first = lines.append(row(1));
  EXPECT_NE(first.find("no/such"), std::string::npos);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(lines.append(row(i)), "");
  EXPECT_EQ(lines.dropped(), 501);
}

TEST(BoundedLines, GoesOnWhenTheFileSystemDoes) {
  const Folder folder;
  const std::string later = (folder.path / "later").string();
  BoundedLines lines(later + "/x.jsonl", 8192);
  EXPECT_NE(lines.append(row(1)), "");
  fs::create_directories(later);
  for (int i = 0; i < BoundedLines::kRetry; ++i) lines.append(row(2));
  EXPECT_EQ(lines.append(row(3)), "");
  EXPECT_EQ(lines_of(later + "/x.jsonl"), std::vector{row(3)});
}

TEST(BoundedLines, ResumeDropsLaterStepsAndATornLine) {
  const Folder folder;
  {
    base::LineAppender old(folder.file());
    for (int i = 1; i <= 5; ++i) old.append(row(i));
  }
  base::atomic_write(folder.file(), base::read_file(folder.file()) + "{\"step\":6");
  BoundedLines lines(folder.file(), 8192);
  lines.resume_after(3);
  lines.append(row(4));
  EXPECT_EQ(lines_of(folder.file()), (std::vector{row(1), row(2), row(3), row(4)}));
  BoundedLines anew(folder.file(), 8192);
  anew.resume_after(0);
  anew.append(row(1));
  EXPECT_EQ(lines_of(folder.file()).size(), 1u);
  EXPECT_THROW(BoundedLines("x", 10), Error);
}

TEST(BoundedLines, ResumeReplacesNothingButFiles) {
  const Folder folder;
  ASSERT_EQ(::mkfifo(folder.file().c_str(), 0600), 0);
  BoundedLines(folder.file(), 8192).resume_after(0);
  EXPECT_TRUE(fs::is_fifo(folder.file()));
}

}  // namespace
}  // namespace hpqf::observe
