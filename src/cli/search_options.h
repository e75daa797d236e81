// The options that `snug search` takes in addition to the keys of a plan: which machines and
// methods to try, and how to rank them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "cli/request.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {

// A number of GPUs of one type of the hardware table, on one or several nodes. Without a device it
// stands for the device of the recipe, or else for this machine.
struct SearchMachine {
  int64_t nodes = 1;
  int64_t devices = 1;
  std::string device;
  // Text such as "2x 8x h100", "8x h100" or "h100".
  std::string text() const;
  bool operator==(const SearchMachine&) const = default;
};

// Ranking by the hours of a job would give the order of tokens_per_second, since every machine runs
// the same job.
enum class RankBy : uint8_t { tokens_per_second, cost };
constexpr auto words_of(RankBy /*type*/) {
  return base::words<RankBy>(
      {{RankBy::tokens_per_second, "tokens_per_second"}, {RankBy::cost, "cost"}});
}

struct SearchOptions {
  std::vector<SearchMachine> machines;   // the recipe's machine if empty
  std::vector<formats::Method> methods;  // the recipe's method if empty
  RankBy rank_by = RankBy::tokens_per_second;
  std::optional<double> price_per_hour;  // US dollars per GPU; if empty, the hardware table's price
  std::optional<double> job_tokens;      // for the hours shown; nothing: the data's tokens
  std::string recipe_out;                // the file to write the best recipe to; empty: none
};

// Removes the words that set these options from the request; the recipe's words stay. Throws
// UserError, also where machines are given together with device or devices.
SearchOptions take_search_options(Request& request);

// The text of `snug search --help`.
std::string search_help();

}  // namespace snug::cli
