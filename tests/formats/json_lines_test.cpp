#include "formats/json_lines.h"

#include "../base/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>

namespace snug::formats {
namespace {

using testing::contains;
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

TEST(JsonLines, ABrokenLineElsewhereIsAnError) {
  const TemporaryFolder folder;
  const auto error = [&](std::string_view text) {
    return user_error_of([&] { resumed(folder, text, 5); });
  };
  EXPECT_TRUE(contains(error("{\"step\":1}\nx\n{\"step\":2}\n"), "m.jsonl:2: the line is not"));
  EXPECT_TRUE(contains(error("{\"step\":1}\n[]\n{\"step\":2}\n"), "must hold a JSON object"));
}

TEST(JsonLinesDeath, RecordsOfSeveralLinesAreBugs) {
  const TemporaryFolder folder;
  JsonLines lines = JsonLines::create(folder / "m.jsonl");
  EXPECT_DEATH(lines.append("{}\n"), "several lines");
}

}  // namespace
}  // namespace snug::formats
