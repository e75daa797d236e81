// The line that moves: it never breaks on a narrow terminal, and has more on a wide one.
#include "train/progress_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "base/temporary_folder.h"
#include "train/step_metrics.h"

namespace snug::train {
namespace {

using snug::testing::contains;

StepMetrics some_step() {
  return {.step = 50,
          .loss = 1.61757,
          .grad_norm = 4.3539,
          .learning_rate = 1.43e-5,
          .tokens_per_second = 450.6,
          .resident_bytes = int64_t{85} << 20};
}
constexpr ProgressState kState{.total_steps = 600, .seconds_left = 3725, .planned_share = 0.982};

std::string line_of(const StepMetrics& metrics, const ProgressState& state, int64_t columns) {
  std::array<char, 1024> buffer{};
  return std::string(progress_line(metrics, state, columns, buffer));
}

// Each character begins with one byte that is none of UTF-8's later ones.
int64_t columns_of(const std::string& line) {
  return std::ranges::count_if(line, [](char byte) { return (byte & 0xC0) != 0x80; });
}

TEST(ProgressLine, HasAllThatIsAskedOfIt) {
  const std::string line = line_of(some_step(), kState, 140);
  for (const char* part : {"━━", "··", "step 50/600", "loss 1.6176", "lr 1.43e-05", "1:02:05 left",
                           "451 tokens/s", "98 % of plan", "85 MiB", "grad_norm 4.354"})
    EXPECT_TRUE(contains(line, part)) << part << " in " << line;
  EXPECT_FALSE(contains(line_of(some_step(), {.total_steps = 600}, 140), "of plan"));
}

TEST(ProgressLine, FitsAnyTerminal) {
  for (int64_t columns = 0; columns <= 200; ++columns) {
    const std::string line = line_of(some_step(), kState, columns);
    EXPECT_LE(columns_of(line), columns) << line;
    EXPECT_EQ(line.empty(), columns < 11) << line;
  }
  EXPECT_EQ(line_of(some_step(), kState, 27), "step 50/600, loss 1.6176");
  EXPECT_EQ(line_of(some_step(), kState, 20), "········ step 50/600");
}

TEST(ProgressLine, FillsItsBar) {
  StepMetrics metrics = some_step();
  metrics.step = 600;
  EXPECT_EQ(line_of(metrics, kState, 21), "━━━━━━━━ step 600/600");
  EXPECT_EQ(line_of(metrics, {.total_steps = 0}, 19), "━━━━━━━━ step 600/0");
}

TEST(StepMetrics, AnyNameIsOneOfJson) {
  const std::string name = "rewards/regex:(?s)\\$ \"\x01\"" + std::string(10000, 'a') + "/mean";
  const std::array<NamedMeasure, 2> measures{{{name, 0.25}, {"reward", NAN}}};
  StepMetrics metrics = some_step();
  metrics.of_data = measures;
  metrics.grad_norm = INFINITY;
  std::string line = "what was there";
  write_json(metrics, line);
  const nlohmann::json read = base::parse_json(line, "metrics.jsonl");
  EXPECT_EQ(read.at(name), 0.25);
  EXPECT_FALSE(read.contains("reward"));
  EXPECT_TRUE(read.at("grad_norm").is_null());
  EXPECT_EQ(read.at("step"), 50);
  EXPECT_EQ(read.at("resident_bytes"), int64_t{85} << 20);
}

}  // namespace
}  // namespace snug::train
