// What `snug search` takes next to the keys of a plan: which machines and methods, and by what they
// are ranked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "cli/request.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {

// One of several cards of a hardware table. Without a device: what the recipe says, or what is
// here.
struct SearchMachine {
  int64_t nodes = 1;
  int64_t devices = 1;
  std::string device;
  // "2x 8x h100", "8x h100", "h100".
  std::string text() const;
  bool operator==(const SearchMachine&) const = default;
};

// The hours that a job takes rank as tokens_per_second does: all machines have the same job.
enum class RankBy : uint8_t { tokens_per_second, cost };
constexpr auto words_of(RankBy /*type*/) {
  return base::words<RankBy>(
      {{RankBy::tokens_per_second, "tokens_per_second"}, {RankBy::cost, "cost"}});
}

struct SearchOptions {
  std::vector<SearchMachine> machines;   // empty: that of the recipe
  std::vector<formats::Method> methods;  // empty: that of the recipe
  RankBy rank_by = RankBy::tokens_per_second;
  std::optional<double> price_per_hour;  // of a card; nothing: the hardware table's
  std::optional<double> job_tokens;      // for the hours that are shown; nothing: the data's
  std::string recipe_out;                // a file for the best recipe; empty: none
};

// Takes the words of these keys out of the request, and leaves those of the recipe. Throws
// UserError, also where machines are given together with device or devices.
SearchOptions take_search_options(Request& request);

// The text of `snug search --help`.
std::string search_help();

}  // namespace snug::cli
