#include "formats/folder/json_lines.h"

#include "../base/captured_stream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace snug::formats {
namespace {

using testing::contains;
using testing::dies;
using testing::TemporaryFolder;
using testing::user_error_of;

constexpr std::string_view kThree =
    "{\"step\":1,\"loss\":2.5}\n{\"step\":2}\n{\"step\":2,\"eval_loss\":1}\n{\"step\":3}\n";

std::string resumed(const TemporaryFolder& folder, std::string_view text, int64_t last_step) {
  const auto path = folder.write("m.jsonl", text);
  JsonLines::resume(path, last_step).append(R"({"step":9})");
  return base::read_text_file(path);
}

TEST(JsonLines, AppendsWholeLines) {
  const TemporaryFolder folder;
  folder.write("m.jsonl", "old");
  JsonLines lines = JsonLines::create(folder / "m.jsonl");
  lines.append(R"({"step":1})");
  const std::string large = "{\"text\":\"" + std::string(10'000, 'x') + "\"}";
  lines.append(large);
  EXPECT_EQ(base::read_text_file(lines.path()), "{\"step\":1}\n" + large + "\n");
}

TEST(JsonLines, ResumesAfterAStep) {
  const TemporaryFolder folder;
  const std::string text(kThree);
  EXPECT_EQ(resumed(folder, kThree, 3), text + "{\"step\":9}\n");
  EXPECT_EQ(resumed(folder, kThree, 2),
            text.substr(0, text.find("{\"step\":3")) + "{\"step\":9}\n");
  EXPECT_EQ(resumed(folder, kThree, 0), "{\"step\":9}\n");
}

TEST(JsonLines, ResumeStartsAMissingFile) {
  const TemporaryFolder folder;
  JsonLines::resume(folder / "m.jsonl", 5).append("{}");
  EXPECT_EQ(base::read_text_file(folder / "m.jsonl"), "{}\n");
}

TEST(JsonLines, ATornLastLineIsDropped) {
  const TemporaryFolder folder;
  EXPECT_EQ(resumed(folder, "{\"step\":1}\n{\"step\":2,\"lo", 5), "{\"step\":1}\n{\"step\":9}\n");
  EXPECT_EQ(resumed(folder, "{\"step\":1}\n{\"step\":2}", 5), "{\"step\":1}\n{\"step\":9}\n");
  EXPECT_EQ(resumed(folder, "{\"step\":1}\n{\"st\n", 5), "{\"step\":1}\n{\"step\":9}\n");
}

// Of what is kept only the last line and the first are read.
TEST(JsonLines, ABrokenLineElsewhereIsAnError) {
  const TemporaryFolder folder;
  const auto error = [&](std::string_view text) {
    return user_error_of([&] { resumed(folder, text, 1); });
  };
  for (const std::string broken : {"x", "[]", "", "{\"step\":1.5}", "{\"step\":1,\"step\":1}"}) {
    EXPECT_TRUE(
        contains(error("{\"step\":1}\n" + broken + "\n{\"step\":\n"), "m.jsonl:2: the line is not"))
        << broken;
    EXPECT_TRUE(contains(error(broken + "\n{\"step\":1}\n"), "m.jsonl:1: the line is not"));
  }
  EXPECT_TRUE(contains(error("x\n{\"step\":2}\n"), "m.jsonl:1: the line is not"));
}

TEST(JsonLines, ABrokenLineOfALaterStepIsDropped) {
  const TemporaryFolder folder;
  EXPECT_EQ(resumed(folder, "{\"step\":1}\n{\"step\":2}\nx\n{\"step\":3}\n", 1),
            "{\"step\":1}\n{\"step\":9}\n");
}

// Lines that lie across the pieces in which the file is read, and more of them than one.
TEST(JsonLines, ResumesInAFileOfManyPieces) {
  const TemporaryFolder folder;
  std::string text;
  std::vector<size_t> ends{0};
  for (int step = 1; step <= 40; ++step) {
    text += fmt::format("{{\"step\":{},\"text\":\"{}\"}}\n", step,
                        std::string(static_cast<size_t>(step) * 4999, 'x'));
    ends.push_back(text.size());
  }
  for (const int64_t last_step : {40, 39, 31, 7, 1, 0})
    EXPECT_EQ(resumed(folder, text, last_step),
              text.substr(0, ends[static_cast<size_t>(last_step)]) + "{\"step\":9}\n")
        << last_step;
}

// What a disk that lost power may leave: a length without contents.
TEST(JsonLines, AnOverlongLineIsABrokenOne) {
  const TemporaryFolder folder;
  const std::string much(size_t{3} << 20, '\0');
  const std::string first = "{\"step\":1}\n";
  EXPECT_EQ(resumed(folder, first + much, 5), first + "{\"step\":9}\n");
  EXPECT_EQ(resumed(folder, first + much + "\n", 5), first + "{\"step\":9}\n");
  EXPECT_EQ(resumed(folder, much, 5), "{\"step\":9}\n");
  const std::string valid = "{\"text\":\"" + std::string(size_t{3} << 20, 'x') + "\"}\n";
  EXPECT_TRUE(contains(user_error_of([&] { resumed(folder, first + valid + "{\n", 5); }),
                       "m.jsonl:2: the line is not"));
}

TEST(JsonLines, ResumesInAFileOfAnySize) {
  const TemporaryFolder folder;
  const auto path = folder.write("m.jsonl", "{\"step\":1}\n");
  constexpr int64_t kLarge = int64_t{3} << 30;  // nearly all of it a hole
  const std::string end = "\n{\"step\":2}\n{\"step\":3}\n";
  base::File::open_for_update(path).write_at(kLarge, end.data(), static_cast<int64_t>(end.size()));
  JsonLines::resume(path, 2).append("{}");
  base::File file = base::File::open_for_reading(path);
  std::string kept(15, ' ');
  EXPECT_EQ(file.size(), kLarge + static_cast<int64_t>(kept.size()));
  file.read_at(kLarge, kept.data(), static_cast<int64_t>(kept.size()));
  EXPECT_EQ(kept, "\n{\"step\":2}\n{}\n");
}

TEST(JsonLinesDeath, RecordsOfSeveralLinesAreBugs) {
  const TemporaryFolder folder;
  JsonLines lines = JsonLines::create(folder / "m.jsonl");
  EXPECT_TRUE(dies([&] { lines.append("{}\n"); }, "several lines"));
}

}  // namespace
}  // namespace snug::formats
