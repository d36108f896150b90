#include "hpqf/device/machine/file_tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hpqf::device::machine {
namespace {

TEST(ParseList, TheKernelsWays) {
  EXPECT_EQ(parse_list("0-3,8,10-11\n"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_list("5"), std::vector<int>{5});
  EXPECT_EQ(parse_list("3,1,3"), (std::vector<int>{1, 3}));
  EXPECT_TRUE(parse_list("").empty());
  EXPECT_TRUE(parse_list("\n").empty());
}

TEST(ParseList, WhatIsNoListEndsIt) {
  EXPECT_EQ(parse_list("0,x,2"), std::vector<int>{0});
  EXPECT_TRUE(parse_list("4-2").empty());
  EXPECT_TRUE(parse_list("-1").empty());
  EXPECT_TRUE(parse_list("0-99999999999").empty()) << "must not fill the memory";
}

TEST(ToInteger, AllOfTheTextOrNothing) {
  EXPECT_EQ(to_integer("-1"), -1);
  EXPECT_EQ(to_integer("9223372036854771712"), 9223372036854771712);
  EXPECT_FALSE(to_integer("12 kB"));
  EXPECT_FALSE(to_integer(""));
  EXPECT_FALSE(to_integer("99999999999999999999"));
}

class OnDisk : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("hpqf_tree_" + std::to_string(getpid()));
    std::filesystem::create_directories(root_ / "proc");
    std::ofstream(root_ / "proc/meminfo") << "MemTotal:       2048 kB\nMemFree: 1 kB\nMemTotal: 9 kB\n";
    std::ofstream(root_ / "proc/secret") << "1\n";
    chmod((root_ / "proc/secret").c_str(), 0);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::filesystem::path root_;
};

TEST_F(OnDisk, ReadsListsAndTellsDeniedFromMissing) {
  const RootTree tree(root_.string());
  EXPECT_EQ(tree.read("proc/nothing").access, FileTree::Access::missing);
  EXPECT_EQ(tree.read("proc").access, FileTree::Access::missing) << "a folder is no file";
  EXPECT_EQ(tree.list("proc"), (std::vector<std::string>{"meminfo", "secret"}));
  EXPECT_TRUE(tree.list("sys").empty());
  EXPECT_EQ(tree.line("proc/meminfo"), "MemTotal:       2048 kB");
  EXPECT_EQ(tree.fields("proc/meminfo", {"MemTotal", "Absent"}), (FileTree::Fields{{"MemTotal", "2048 kB"}}));
  if (geteuid() != 0) {  // root reads everything
    EXPECT_EQ(tree.read("proc/secret").access, FileTree::Access::denied);
  }
}

TEST_F(OnDisk, ARecordingAnswersLikeTheMachine) {
  const RootTree live(root_.string());
  const RecordingTree recorder(live);
  recorder.fields("proc/meminfo", {"MemTotal"});
  recorder.read("proc/nothing");
  recorder.read("proc/secret");
  const RecordedTree tree(recorder.files());
  EXPECT_EQ(tree.read("proc/meminfo").text, "MemTotal: 2048 kB\n") << "of fields only the lines that were asked for";
  EXPECT_EQ(tree.fields("proc/meminfo", {"MemTotal", "MemFree"}), (FileTree::Fields{{"MemTotal", "2048 kB"}}));
  EXPECT_EQ(tree.read("proc/secret").access, live.read("proc/secret").access);
  EXPECT_EQ(tree.read("proc/nothing").access, FileTree::Access::missing);
  EXPECT_EQ(tree.list("proc"), (std::vector<std::string>{"meminfo", "secret"}));
}

TEST(RecordedTree, DeniedAndNested) {
  const RecordedTree tree({{{"a/b/c", "1\n"}, {"a/b/d", "x"}, {"ab/c", "2"}}, {"a/e"}});
  EXPECT_EQ(tree.list("a"), (std::vector<std::string>{"b", "e"}));
  EXPECT_EQ(tree.list("a/b"), (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(tree.read("a/e").access, FileTree::Access::denied);
  EXPECT_EQ(tree.number("a/b/c"), 1);
  EXPECT_FALSE(tree.number("a/b/d"));
  EXPECT_FALSE(tree.number("a/e"));
}

}  // namespace
}  // namespace hpqf::device::machine
