// What `snug search` says: the machines and methods that it looked at, the best plans, why the rest
// was rejected, and the best recipe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/search_options.h"
#include "plan/choice/search.h"

namespace snug::cli {

// One method on one machine.
struct SearchedMachine {
  std::string machine;
  std::string method;
  std::string refusal;  // why nothing could be searched; empty: it was
  int64_t cards = 1;
  // The price of a GPU, in US dollars per hour, and from when; nothing: unknown.
  std::optional<double> price_low;
  std::optional<double> price_high;
  std::string price_date;
  std::optional<double> job_tokens;
  plan::SearchResult result;
};

// A plan of one of them, with what it would take for the whole job.
struct RankedPlan {
  const SearchedMachine* machine = nullptr;
  const plan::FoundPlan* plan = nullptr;
  double tokens_per_second() const { return plan->tokens_per_second; }
  std::optional<double> hours() const;
  std::optional<double> dollars_per_million_tokens() const;
};

// The best first. What has no price comes last where cost ranks.
std::vector<RankedPlan> ranked(const std::vector<SearchedMachine>& machines, RankBy rank_by);

std::string report_text(const std::vector<SearchedMachine>& machines,
                        const std::vector<RankedPlan>& plans);
// Every setting that was judged, too.
std::string report_json(const std::vector<SearchedMachine>& machines,
                        const std::vector<RankedPlan>& plans);

// The best plan as a recipe that runs as it is.
std::string best_recipe(const RankedPlan& best);

}  // namespace snug::cli
