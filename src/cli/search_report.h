// The reports of `snug search`: the machines and methods that were tried, the best plans, why other
// settings were rejected, and the best recipe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/search_options.h"
#include "plan/choice/search.h"

namespace snug::cli {

// The search result of one method on one machine.
struct SearchedMachine {
  std::string machine;
  std::string method;
  std::string refusal;  // why nothing could be searched; empty if it was
  int64_t cards = 1;
  // The price range of one GPU in US dollars per hour, and the date of the price; nothing if
  // unknown.
  std::optional<double> price_low;
  std::optional<double> price_high;
  std::string price_date;
  std::optional<double> job_tokens;
  plan::SearchResult result;
};

// One plan of a searched machine, with the time and cost of the whole job.
struct RankedPlan {
  const SearchedMachine* machine = nullptr;
  const plan::FoundPlan* plan = nullptr;
  double tokens_per_second() const { return plan->tokens_per_second; }
  std::optional<double> hours() const;
  std::optional<double> dollars_per_million_tokens() const;
};

// Ranks the plans, the best first. When ranking by cost, plans without a price come last.
std::vector<RankedPlan> ranked(const std::vector<SearchedMachine>& machines, RankBy rank_by);

std::string report_text(const std::vector<SearchedMachine>& machines,
                        const std::vector<RankedPlan>& plans);
// The report as JSON, which also lists every setting that was judged.
std::string report_json(const std::vector<SearchedMachine>& machines,
                        const std::vector<RankedPlan>& plans);

// The best plan as a recipe that can be run unchanged.
std::string best_recipe(const RankedPlan& best);

}  // namespace snug::cli
