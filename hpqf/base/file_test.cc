#include "hpqf/base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "hpqf/base/error.h"

namespace hpqf::base {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / (std::string("hpqf_file_") + test->name() + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }
  fs::path folder_;
};

// The kernel refuses to write past the limit, as a full disk would, but with EFBIG.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit now{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

TEST_F(FileTest, WritesAndReadsBytesOfAnySize) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{65537}, size_t{300000}}) {
    std::string content(size, '\0');
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 31 % 251);
    atomic_write(path("a"), content);
    EXPECT_EQ(read_file(path("a")), content);
    EXPECT_EQ(files(), 1u);
  }
}

TEST_F(FileTest, KeepsThePermissionsOfTheFileItReplaces) {
  atomic_write(path("a"), "1");
  ASSERT_EQ(::chmod(path("a").c_str(), 0640), 0);
  atomic_write(path("a"), "2");
  struct stat s {};
  ::stat(path("a").c_str(), &s);
  EXPECT_EQ(s.st_mode & 07777, 0640u);
}

TEST_F(FileTest, NewFileFollowsTheUmask) {
  const mode_t old = ::umask(027);
  atomic_write(path("a"), "1");
  ::umask(old);
  struct stat s {};
  ::stat(path("a").c_str(), &s);
  EXPECT_EQ(s.st_mode & 07777, 0640u);
}

TEST_F(FileTest, FullDiskLeavesTheOldContentAndNoTemporary) {
  atomic_write(path("a"), "old");
  {
    SizeLimit limit(100000);
    EXPECT_THROW(atomic_write(path("a"), std::string(200000, 'x')), Error);
  }
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, TargetThatIsAFolderIsRefusedAndLeavesNothing) {
  fs::create_directories(folder_ / "d" / "inside");
  EXPECT_THROW(atomic_write(path("d"), "x"), Error);
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, MissingFolderAndMissingFileAreErrorsThatNameThePath) {
  try {
    atomic_write(path("no/such/a"), "x");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.asked().find("no/such/a"), std::string::npos);
    EXPECT_FALSE(e.todo().empty());
  }
  EXPECT_THROW(read_file(path("absent")), Error);
  EXPECT_THROW(read_file(folder_.string()), Error);  // a folder opens but cannot be read
  EXPECT_EQ(files(), 0u);
}

TEST_F(FileTest, LinesAppendAndSurviveReopening) {
  {
    LineAppender log(path("log"));
    log.append("{\"step\":1}");
    LineAppender moved(std::move(log));
    moved.append("{\"step\":2}");
    EXPECT_EQ(read_file(path("log")), "{\"step\":1}\n{\"step\":2}\n");  // visible without a flush
    moved.flush();
  }
  LineAppender(path("log")).append("3");
  EXPECT_EQ(read_file(path("log")), "{\"step\":1}\n{\"step\":2}\n3\n");
  LineAppender(path("log"), /*truncate=*/true).append("");
  EXPECT_EQ(read_file(path("log")), "\n");
  EXPECT_THROW(LineAppender(path("no/log")), Error);
}

TEST_F(FileTest, AppendToAFullDiskIsAnError) {
  LineAppender log(path("log"));
  SizeLimit limit(10);
  EXPECT_THROW(log.append(std::string(20, 'x')), Error);
}

TEST_F(FileTest, AtomicWriteNeverReplacesADevice) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const std::string device = path("device");
  std::filesystem::create_symlink("/dev/full", device);
  EXPECT_THROW(atomic_write(device, "x"), Error);
  EXPECT_TRUE(std::filesystem::is_character_file(device));
  EXPECT_TRUE(std::filesystem::is_symlink(device));
  std::filesystem::remove(device);
  std::filesystem::create_symlink("/dev/null", device);
  EXPECT_NO_THROW(atomic_write(device, "x"));
  EXPECT_TRUE(std::filesystem::is_character_file(device));
}

}  // namespace
}  // namespace hpqf::base
