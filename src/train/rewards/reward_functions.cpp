#include "train/rewards/reward_functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "scores/score_list.h"
#include "text/unicode/utf8.h"
#include "train/rewards/record_reference.h"
#include "train/rewards/reward_program.h"
#include "train/rewards/soft_overlong.h"
#include "train/run_folder.h"

namespace snug::train {
namespace {

constexpr std::string_view kRewardsKey = "rewards";

// A score of the answer's text.
class ScoreReward : public RewardFunction {
 public:
  ScoreReward(scores::Score score, std::string field)
      : score_(std::move(score)), reference_(score_.name(), std::move(field)) {}

  void check(const RewardedRecord& record) const override {
    if (!score_.needs_reference()) return;
    const std::string problem = score_.problem_of(reference_.of(record));
    if (!problem.empty())
      throw base::UserError(
          fmt::format("reward {0}: what answers are held against {1}; reward_fields={0}=FIELD "
                      "names another field of the record",
                      score_.name(), problem),
          {record.file, record.line, 0});
  }

  std::vector<double> judge(std::span<const RewardedAnswer> answers) override {
    std::vector<double> rewards;
    rewards.reserve(answers.size());
    const RewardedRecord* last = nullptr;  // answers to a prompt lie next to one another
    std::string reference;
    for (const RewardedAnswer& answer : answers) {
      if (score_.needs_reference() && answer.record != last) {
        reference = reference_.of(*answer.record);
        last = answer.record;
      }
      rewards.push_back(score_.of(text::repair_utf8(answer.answer), reference));
    }
    return rewards;
  }

 private:
  scores::Score score_;
  RecordReference reference_;
};

// The fields that reward_fields names, by the name of a function: all of it, or what is before its
// argument.
class NamedFields {
 public:
  explicit NamedFields(const formats::Recipe& recipe) : recipe_(recipe) {
    for (const std::string& pair : recipe.reward_fields) add(pair);
  }

  // Empty where none is named. Counts as used.
  std::string take(const std::string& function) {
    for (const std::string& name : {function, std::string(scores::name_in(function))}) {
      const auto found = fields_.find(name);
      if (found == fields_.end()) continue;
      used_.push_back(name);
      return found->second;
    }
    return "";
  }

  void check_used(const std::vector<std::string>& functions) const {
    for (const auto& [name, field] : fields_)
      if (std::ranges::find(used_, name) == used_.end())
        recipe_.fail("reward_fields",
                     fmt::format("names the field '{}' for '{}', which is none of the rewards that "
                                 "hold answers against a field; rewards has {}",
                                 field, name, fmt::join(functions, ", ")));
  }

 private:
  void add(const std::string& pair) {
    const size_t equal = pair.rfind('=');
    if (equal == std::string::npos || equal == 0 || equal + 1 == pair.size())
      recipe_.fail("reward_fields", fmt::format("has '{}'; expected REWARD=FIELD, such as "
                                                "exact=solution",
                                                pair));
    if (!fields_.emplace(pair.substr(0, equal), pair.substr(equal + 1)).second)
      recipe_.fail("reward_fields",
                   fmt::format("names a field for '{}' twice; keep one", pair.substr(0, equal)));
  }

  const formats::Recipe& recipe_;
  std::map<std::string, std::string> fields_;
  std::vector<std::string> used_;
};

using Made = std::unique_ptr<RewardFunction>;

Made make_program(const formats::Recipe& recipe, const std::string& argument) {
  const ProgramLimits limits{recipe.reward_timeout, recipe.reward_memory};
  std::filesystem::path log;
  if (!recipe.output_dir.empty())
    log = std::filesystem::path(recipe.output_dir) / RunFolder::kRewardLog;
  return std::make_unique<RewardProgram>(argument, limits, std::move(log));
}

Made make_soft_overlong(const formats::Recipe& recipe, const std::string& argument) {
  const int64_t most = recipe.max_completion_length;
  int64_t cache = 0;
  const char* end = argument.data() + argument.size();
  const auto [stop, error] = std::from_chars(argument.data(), end, cache);
  if (error != std::errc() || stop != end || cache < 1 || cache > most)
    throw std::invalid_argument(fmt::format(
        "its TOKENS must be a whole number from 1 to max_completion_length ({}): how many tokens "
        "before that length the penalty begins",
        most));
  return std::make_unique<SoftOverlong>(most, cache);
}

// What rewards answers and is no score. `make` throws std::invalid_argument that says what is wrong
// with the argument.
struct RewardRow {
  std::string_view name;
  Made (*make)(const formats::Recipe& recipe, const std::string& argument);
};
constexpr auto kRewards =
    std::to_array<RewardRow>({{"soft_overlong", make_soft_overlong}, {"exec", make_program}});

// A function's name without its argument, a pattern or a command, where no other has the same.
std::vector<std::string> metric_names(std::span<const scores::WeighedName> listed) {
  std::vector<std::string> names;
  names.reserve(listed.size());
  for (const scores::WeighedName& each : listed) {
    const std::string_view kind = scores::name_in(each.written);
    const auto same = std::ranges::count(listed, kind, [](const scores::WeighedName& other) {
      return scores::name_in(other.written);
    });
    names.emplace_back(same == 1 ? kind : std::string_view(each.written));
  }
  return names;
}

std::vector<std::string_view> names_of_rows() {
  std::vector<std::string_view> names;
  names.reserve(kRewards.size());
  for (const RewardRow& row : kRewards) names.push_back(row.name);
  return names;
}

}  // namespace

RewardFunctions::RewardFunctions(const formats::Recipe& recipe) {
  if (recipe.rewards.empty())
    recipe.fail(kRewardsKey,
                "is not given; objective=grpo learns from rewards, such as rewards=exact");
  NamedFields fields(recipe);
  const std::vector<std::string_view> others = names_of_rows();
  const auto listed = scores::weighed_names_of_list(recipe, kRewardsKey, recipe.rewards, others);
  names_ = metric_names(listed);
  weights_.reserve(listed.size());
  functions_.reserve(listed.size());
  for (const auto& [name, weight] : listed) {
    const auto row = std::ranges::find(kRewards, scores::name_in(name), &RewardRow::name);
    if (row != kRewards.end()) {
      try {
        functions_.push_back(row->make(recipe, std::string(scores::argument_in(name))));
      } catch (const std::invalid_argument& error) {
        recipe.fail(kRewardsKey, fmt::format("has '{}', but {}", name, error.what()));
      }
    } else {
      scores::Score score = scores::score_of_name(recipe, kRewardsKey, name, others);
      std::string field = score.needs_reference() ? fields.take(name) : "";
      functions_.push_back(std::make_unique<ScoreReward>(std::move(score), std::move(field)));
    }
    weights_.push_back(weight);
  }
  fields.check_used(names_);
}

void RewardFunctions::check(const RewardedRecord& record) const {
  for (const auto& function : functions_) function->check(record);
}

std::vector<double> RewardFunctions::judge(std::span<const RewardedAnswer> answers) {
  const size_t count = functions_.size();
  std::vector<double> rewards(answers.size() * count);
  for (size_t f = 0; f < count; ++f) {
    const std::vector<double> column = functions_[f]->judge(answers);
    SNUG_CHECK_EQ(column.size(), answers.size());
    for (size_t a = 0; a < answers.size(); ++a) rewards[a * count + f] = column[a];
  }
  return rewards;
}

}  // namespace snug::train
