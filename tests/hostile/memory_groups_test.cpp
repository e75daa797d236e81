// Random recipes in a control group with the memory that was planned, and no byte more.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>

#include "../cli/binary_run.h"
#include "base/random.h"
#include "findings.h"
#include "formats/recipe/recipe.h"
#include "memory_group.h"
#include "scene.h"

namespace snug::hostile {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

constexpr const char* kKind = "memory_groups";

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  // One of the words, as "key=word".
  std::string of(const std::string& key, std::initializer_list<const char*> values) {
    return key + "=" + *(values.begin() + random_() % values.size());
  }

 private:
  std::mt19937_64 random_;
};

// Some are refused: what does not go together is not sorted out here.
Words random_recipe(uint64_t seed) {
  Draw draw(seed);
  Words words{draw.of("method", {"lora", "lora", "qlora", "full"}),
              draw.of("per_device_train_batch_size", {"1", "3", "8", "16"}),
              draw.of("max_length", {"64", "129", "256", "512"}),
              draw.of("recompute", {"none", "gate_up", "attention", "all_but_attention", "layer"}),
              draw.of("gradient_accumulation_steps", {"1", "2"}),
              draw.of("compute_dtype", {"auto", "auto", "fp32"}),
              draw.of("packing", {"true", "false"}),
              draw.of("threads", {"1", "2"}),
              draw.of("optim", {"adamw", "adamw", "adamw_bf16", "adamw_8bit"})};
  if (words.front() != "method=full")
    words.push_back(draw.of("lora_r", {"2", "16", "64"}));
  else
    words.push_back(draw.of("freeze_modules", {"null", "null", "embed_tokens", "layers.[0-2]"}));
  return words;
}

class Recipe {
 public:
  explicit Recipe(const Words& words)
      : words_(cli::joined(
            {SNUG_BINARY, "train", "model=examples/wordnet", "data=examples/wordnet/train.jsonl",
             "max_steps=2", "save_steps=1", "save_total_limit=1", "overwrite_output_dir=true",
             "output_dir=" + (folder_ / "run").string()},
            words)) {}

  Ended run(const fs::path& group) {
    return hostile::run(
        {.words = words_, .streams = folder_.path(), .limit_seconds = 300, .group = group});
  }
  int64_t planned_bytes() const {
    const auto plan = nlohmann::json::parse(cli::contents_of(folder_ / "run/plan.json"));
    return plan["resident"]["peak_bytes"].get<int64_t>();
  }

 private:
  testing::TemporaryFolder folder_;
  Words words_;
};

std::string text_of(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += " " + word;
  return text;
}

// False where the recipe is refused, and nothing was to be found out.
bool run_one(int64_t number) {
  const std::string trial = fmt::format("recipe/{}", number);
  if (!is_wanted(trial)) return false;
  const Words words = random_recipe(base::hash_name(trial.data(), trial.size()) + options().seed);
  Recipe recipe(words);
  if (const Ended free = recipe.run(""); free.exit_code != 0) {
    if (free.exit_code != 2 && free.exit_code != 3)
      record(kKind, trial, free.exit_code,
             fmt::format("without a limit: {}{}", free.last_line(), text_of(words)));
    return false;
  }
  const int64_t planned = recipe.planned_bytes();
  const auto group = MemoryGroup::make(planned);
  const Ended end = recipe.run(group->path());
  std::string problem;
  if (end.exit_code != 0 || group->kills() > 0)
    problem = fmt::format("exit code {} within {} bytes, {} killed:{}", end.exit_code, planned,
                          group->kills(), text_of(words));
  record(kKind, trial, end.exit_code, problem);
  return true;
}

TEST(MemoryGroups, HoldWhatWasPlanned) {
  if (MemoryGroup::make(int64_t{1} << 30) == nullptr) {
    record_skipped(kKind, "no control group for memory can be made here");
    GTEST_SKIP() << "no control group for memory can be made here";
  }
  const int64_t wanted = trials(2, 60);
  int64_t done = 0;
  for (int64_t number = 0; number < 10 * wanted && done < wanted; ++number)
    if (run_one(number)) ++done;
  if (options().only.empty()) {
    EXPECT_EQ(done, wanted) << "too many of the recipes are refused";
  }
}

TEST(MemoryGroups, KillWhatTakesMore) {
  const auto group = MemoryGroup::make(int64_t{16} << 20);
  if (group == nullptr) GTEST_SKIP() << "no control group for memory can be made here";
  const testing::TemporaryFolder folder;
  const Ended end =
      run({.words = {"/bin/sh", "-c", "a=$(head -c 100000000 /dev/zero | tr '\\0' x)"},
           .streams = folder.path(),
           .group = group->path()});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_GT(group->kills(), 0);
}

}  // namespace
}  // namespace snug::hostile
