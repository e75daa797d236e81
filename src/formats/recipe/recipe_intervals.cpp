#include "formats/recipe/recipe_intervals.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/lower_case.h"
#include "formats/foreign/foreign_keys.h"

namespace snug::formats {
namespace {

struct IntervalKey {
  std::string_view name;
  std::string_view steps;  // the recipe's key for the interval
  bool is_per_epoch = false;
};

constexpr std::array kIntervalKeys{IntervalKey{"logging_strategy", "logging_steps"},
                                   IntervalKey{"saves_per_epoch", "save_steps", true},
                                   IntervalKey{"evals_per_epoch", "eval_steps", true}};

const IntervalKey* find_interval(std::string_view name) {
  const auto found = std::ranges::find(kIntervalKeys, name, &IntervalKey::name);
  return found == kIntervalKeys.end() ? nullptr : &*found;
}

// The share of all steps for one of `times` equal intervals. It is rounded down, since the
// resulting number of steps is rounded up; so intervals end with whole epochs.
std::string share_text(double times) {
  constexpr double kDigits = 1e6;
  return fmt::format("{}", std::floor(kDigits / times) / kDigits);
}

class Settling {
 public:
  Settling(std::vector<Written>& all, const Intervals& intervals)
      : all_(all), intervals_(intervals) {}

  void take(const IntervalKey& key, const Written& written) {
    if (written.items.empty())
      return intervals_.notes.push_back(fmt::format("{}'{}' has no value, which changes nothing",
                                                    base::to_string(written.where), written.name));
    const std::string word = base::lower_case(written.items.front());
    if (key.is_per_epoch) return take_number(key, written, word);
    if (word == "steps") return note(written, fmt::format("{} says it", key.steps));
    if (word == "epoch") return set(key, written, intervals_.epochs);
    if (word == "no" || word == "none" || word == "false") return leave_out(key, written);
    intervals_.mistakes.add(
        fmt::format("'{}' is '{}', which is not built; say {}: a number of steps, or a share of "
                    "all steps",
                    written.name, written.items.front(), key.steps),
        written.where);
  }

 private:
  void take_number(const IntervalKey& key, const Written& written, const std::string& word) {
    double times = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), times);
    const bool is_number = error == std::errc() && stop == word.data() + word.size();
    if (word == "false" || (is_number && times == 0)) return leave_out(key, written);
    if (!is_number || !(times > 0) || !std::isfinite(times)) {
      intervals_.mistakes.add(
          fmt::format("'{}' is '{}'; expected a number of 0 or more", written.name, word),
          written.where);
      return;
    }
    set(key, written, times * intervals_.epochs);
  }

  bool has_steps(const IntervalKey& key) const {
    return std::ranges::any_of(
        all_, [&](const Written& each) { return each.name == key.steps && !each.items.empty(); });
  }

  // If the recipe also gives the interval in steps, that is ignored, as in transformers.
  void set(const IntervalKey& key, const Written& written, double times) {
    if (times <= 0) return;
    if (times <= 1 && key.steps == "logging_steps")
      return note(written, "the log has the first and the last step at least");
    if (has_steps(key)) note(written, fmt::format("{} is not used next to it", key.steps));
    std::erase_if(all_, [&](const Written& each) { return each.name == key.steps; });
    add_steps(key, written, times > 1 ? share_text(times) : "0");
  }

  void add_steps(const IntervalKey& key, const Written& written, const std::string& said) {
    all_.push_back(
        {std::string(key.steps), {said}, false, written.where, false, false, written.name});
  }

  void leave_out(const IntervalKey& key, const Written& written) {
    if (key.steps == "logging_steps")
      return note(written, "the log has the first and the last step at least");
    if (key.steps == "eval_steps" && has_steps(key))
      note(written, "eval_steps is not used next to it; without eval_data nothing is evaluated");
    else if (key.steps == "eval_steps")
      note(written, "without eval_data nothing is evaluated");
    else
      note(written, "the result is saved at the end");
    std::erase_if(all_, [&](const Written& each) { return each.name == key.steps; });
    add_steps(key, written, "0");
  }

  void note(const Written& written, const std::string& what) {
    intervals_.notes.push_back(fmt::format("{}'{}' is '{}': {}", base::to_string(written.where),
                                           written.name, written.items.front(), what));
  }

  std::vector<Written>& all_;
  const Intervals& intervals_;
};

}  // namespace

std::optional<double> epochs_in(const std::vector<Written>& all) {
  for (const Written& written : all) {
    const ToolKey* row = find_tool_key(foreign_keys(), written.name);
    const RecipeKey* key = find_recipe_key(row == nullptr ? written.name : row->key);
    if (key == nullptr || key->name != "num_train_epochs" || written.items.empty()) continue;
    try {
      return std::get<double>(parse_value(*key, written));
    } catch (const base::UserError&) {
      return std::nullopt;  // reported where values are parsed
    }
  }
  return std::nullopt;
}

std::vector<Written> with_steps(std::vector<Written> all, const Intervals& intervals) {
  std::vector<Written> said;
  for (const Written& written : all)
    if (find_interval(written.name) != nullptr) said.push_back(written);
  std::erase_if(all, [](const Written& written) { return find_interval(written.name) != nullptr; });
  Settling settling(all, intervals);
  for (const Written& written : said) settling.take(*find_interval(written.name), written);
  return all;
}

}  // namespace snug::formats
