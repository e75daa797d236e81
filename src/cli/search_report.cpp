#include "cli/search_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/recipe/recipe_keys.h"
#include "plan/document/document.h"

namespace snug::cli {
namespace {

using plan::FoundPlan;
using plan::JudgedSetting;
using plan::Judgement;
using plan::PlanDocument;
using plan::Setting;

constexpr size_t kShownRejected = 5;

// Text such as "full_shard prefetch=post, recompute=layer, activations offloaded, weights
// offloaded".
std::string words_of_setting(const Setting& setting, int64_t cards) {
  std::string text;
  if (cards > 1) {
    text = base::word_of(setting.strategy);
    if (setting.prefetch != formats::Prefetch::pre)
      text += fmt::format(" prefetch={}", base::word_of(setting.prefetch));
    text += ", ";
  }
  text += fmt::format("recompute={}", base::word_of(setting.recompute));
  if (setting.offloads_activations) text += ", activations offloaded";
  if (setting.offloads_params) text += ", weights offloaded";
  if (setting.optimizer != formats::OffloadOptimizer::none)
    text += fmt::format(", optimizer offloaded ({})", base::word_of(setting.optimizer));
  text += fmt::format(", {} row{}", setting.rows, setting.rows == 1 ? "" : "s");
  if (setting.accumulation > 1) text += fmt::format(" x {}", setting.accumulation);
  return text;
}

std::string machine_line(const SearchedMachine& machine) {
  const std::string name = fmt::format("{}, {}", machine.machine, machine.method);
  if (!machine.refusal.empty()) return fmt::format("{}: rejected: {}", name, machine.refusal);
  const plan::SearchResult& result = machine.result;
  const auto fitting =
      std::ranges::count(result.judged, Judgement::fits, &JudgedSetting::judgement);
  return fmt::format(
      "{}: {} settings judged in {:.2f} s ({} jobs of few layers planned), {} fit; the best {} "
      "planned whole in {:.2f} s",
      name, result.judged.size(), result.judging_seconds, result.sized, fitting,
      result.planned_whole, result.planning_seconds);
}

std::string money(const std::optional<double>& dollars) {
  return dollars ? fmt::format("{:.3f}", *dollars) : "unknown";
}

std::string plan_lines(const std::vector<RankedPlan>& plans) {
  std::string text = fmt::format("\n{:>3}{:>14}{:>12}{:>12}{:>12}{:>12}  {}\n", "", "tokens/s",
                                 "device", "host", "$/M tokens", "hours", "plan");
  for (size_t i = 0; i < plans.size(); ++i) {
    const RankedPlan& each = plans[i];
    const PlanDocument& document = each.plan->document;
    text += fmt::format(
        "{:>3}{:>14.0f}{:>12}{:>12}{:>12}{:>12}  {}, {}: {}\n", i + 1, each.tokens_per_second(),
        plan::readable_bytes(document.device.report.peak_bytes),
        plan::readable_bytes(document.host.report.peak_bytes),
        money(each.dollars_per_million_tokens()),
        each.hours() ? fmt::format("{:.2f}", *each.hours()) : "unknown", each.machine->machine,
        each.machine->method, words_of_setting(each.plan->setting, each.machine->cards));
  }
  return text;
}

// The fastest of the settings that do not fit, and their number.
std::string rejected_lines(const SearchedMachine& machine) {
  std::string text;
  size_t count = 0;
  for (const JudgedSetting& judged : machine.result.judged) {
    if (judged.judgement == Judgement::fits) continue;
    if (count++ < kShownRejected)
      text += fmt::format("  {}: {}\n", words_of_setting(judged.setting, machine.cards),
                          plan::reason(judged, machine.result.budget));
  }
  if (count == 0) return "";
  return fmt::format("\nrejected on {}, {} ({}, the fastest first; --json has all)\n{}",
                     machine.machine, machine.method, count, text);
}

nlohmann::ordered_json json_of(const JudgedSetting& judged, const SearchedMachine& machine) {
  nlohmann::ordered_json json{{"setting", words_of_setting(judged.setting, machine.cards)},
                              {"judgement", base::word_of(judged.judgement)},
                              {"basis", judged.is_sized ? "sized" : "predicted"},
                              {"device_bytes", static_cast<int64_t>(judged.figures.device_bytes)},
                              {"host_bytes", static_cast<int64_t>(judged.figures.host_bytes)},
                              {"step_seconds", judged.figures.step_seconds}};
  if (const std::string why = plan::reason(judged, machine.result.budget); !why.empty())
    json["reason"] = why;
  return json;
}

nlohmann::ordered_json json_of(const SearchedMachine& machine) {
  nlohmann::ordered_json json{{"machine", machine.machine}, {"method", machine.method}};
  if (!machine.refusal.empty()) {
    json["refusal"] = machine.refusal;
    return json;
  }
  if (machine.price_low)
    json["price"] = {{"low", *machine.price_low},
                     {"high", machine.price_high.value_or(*machine.price_low)},
                     {"date", machine.price_date}};
  json["judging_seconds"] = machine.result.judging_seconds;
  json["planning_seconds"] = machine.result.planning_seconds;
  json["sized"] = machine.result.sized;
  json["planned_whole"] = machine.result.planned_whole;
  json["device_bytes"] = machine.result.budget.device_bytes;
  const int64_t host_bytes = machine.result.budget.host_bytes;
  json["host_bytes"] = host_bytes == std::numeric_limits<int64_t>::max()
                           ? nlohmann::ordered_json()
                           : nlohmann::ordered_json(host_bytes);
  for (const JudgedSetting& judged : machine.result.judged)
    json["settings"].push_back(json_of(judged, machine));
  return json;
}

nlohmann::ordered_json json_of(const RankedPlan& each) {
  const PlanDocument& document = each.plan->document;
  nlohmann::ordered_json json{
      {"machine", each.machine->machine},
      {"method", each.machine->method},
      {"setting", words_of_setting(each.plan->setting, each.machine->cards)},
      {"tokens_per_second", each.tokens_per_second()},
      {"step_seconds", document.step_seconds},
      {"device_bytes", document.device.report.peak_bytes},
      {"host_bytes", document.host.report.peak_bytes}};
  if (each.hours()) json["hours"] = *each.hours();
  if (each.dollars_per_million_tokens())
    json["dollars_per_million_tokens"] = *each.dollars_per_million_tokens();
  json["recipe"] = best_recipe(each);
  return json;
}

}  // namespace

std::optional<double> RankedPlan::hours() const {
  if (!machine->job_tokens) return std::nullopt;
  return *machine->job_tokens / tokens_per_second() / 3600;
}

std::optional<double> RankedPlan::dollars_per_million_tokens() const {
  if (!machine->price_low) return std::nullopt;
  const double an_hour = *machine->price_low * static_cast<double>(machine->cards);
  return an_hour / 3600 * 1e6 / tokens_per_second();
}

std::vector<RankedPlan> ranked(const std::vector<SearchedMachine>& machines, RankBy rank_by) {
  std::vector<RankedPlan> plans;
  for (const SearchedMachine& machine : machines)
    for (const FoundPlan& plan : machine.result.best) plans.push_back({&machine, &plan});
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  const auto rank = [&](const RankedPlan& plan) {
    if (rank_by == RankBy::cost) return plan.dollars_per_million_tokens().value_or(kUnknown);
    return -plan.tokens_per_second();
  };
  std::ranges::stable_sort(plans, {}, rank);
  return plans;
}

std::string best_recipe(const RankedPlan& best) {
  return formats::given_to_yaml(best.plan->recipe);
}

std::string report_text(const std::vector<SearchedMachine>& machines,
                        const std::vector<RankedPlan>& plans) {
  std::string text;
  for (const SearchedMachine& machine : machines) text += machine_line(machine) + "\n";
  if (!plans.empty()) text += plan_lines(plans);
  for (const SearchedMachine& machine : machines) text += rejected_lines(machine);
  if (!plans.empty())
    text += fmt::format("\n# the best of them as a recipe\n{}", best_recipe(plans.front()));
  return text;
}

std::string report_json(const std::vector<SearchedMachine>& machines,
                        const std::vector<RankedPlan>& plans) {
  nlohmann::ordered_json json;
  json["machines"] = nlohmann::ordered_json::array();
  json["plans"] = nlohmann::ordered_json::array();
  for (const SearchedMachine& machine : machines) json["machines"].push_back(json_of(machine));
  for (const RankedPlan& plan : plans) json["plans"].push_back(json_of(plan));
  return json.dump(2) + "\n";
}

}  // namespace snug::cli
