// `snug search`: finds the fastest or cheapest way to run a job that fits, on this machine or on
// machines that can be rented.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "backends/cuda/device/hardware_table.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/input_paths.h"
#include "cli/open_target.h"
#include "cli/planned_data.h"
#include "cli/search_report.h"
#include "cli/verbs.h"
#include "formats/recipe/recipe.h"
#include "plan/choice/fit.h"
#include "plan/choice/search.h"
#include "runtime/execution/rehearsal.h"

namespace snug::cli {
namespace {

using backends::cuda::HardwareRow;
using backends::cuda::HardwareTable;

// The request for one method on one machine. The host memory that such a machine usually has limits
// the job, unless the recipe sets host_memory.
Request request_for(Request request, const SearchMachine& machine, const std::string& method,
                    const HardwareRow* row, const formats::Recipe& recipe) {
  const auto set = [&](const std::string& word) { request.overrides.push_back(word); };
  if (!method.empty()) set("method=" + method);
  if (machine.device.empty()) return request;
  set("device=" + machine.device);
  if (machine.devices > 1 || machine.nodes > 1 || recipe.is_given("devices"))
    set(fmt::format("devices={}", machine.devices));
  if (machine.nodes > 1 || recipe.is_given("nodes")) set(fmt::format("nodes={}", machine.nodes));
  // The table gives the memory of a whole machine, which a job only has to itself if it uses all of
  // the machine's GPUs.
  if (row != nullptr && row->machine_memory_bytes > 0 && row->machine_devices > 0 &&
      !recipe.is_given("host_memory"))
    set(fmt::format("host_memory={}",
                    row->machine_memory_bytes / row->machine_devices *
                        std::min<int64_t>(machine.devices, row->machine_devices)));
  return request;
}

void set_price(SearchedMachine& searched, const SearchOptions& options, const HardwareRow* row) {
  if (options.price_per_hour) {
    searched.price_low = searched.price_high = options.price_per_hour;
    searched.price_date = "given";
  } else if (row != nullptr && row->price) {
    searched.price_low = row->price->low;
    searched.price_high = row->price->high;
    searched.price_date = row->price->date;
  }
}

void search_in(const Request& request, const SearchOptions& options, const HardwareTable& table,
               SearchedMachine& searched) {
  const PlanningSession session(request, AutoRows::leave);
  const formats::Recipe& recipe = session.recipe();
  if (recipe.objective != formats::Objective::next_token)
    recipe.fail("objective", fmt::format("is {}, whose programs snug search does not judge yet; "
                                         "search without it, and plan what comes first with it",
                                         base::word_of(recipe.objective)));
  set_price(searched, options, table.find(recipe.device));
  searched.cards = recipe.rank_count();
  searched.method = base::word_of(recipe.method);
  if (searched.machine.empty())
    searched.machine = SearchMachine{recipe.node_count(), recipe.devices_per_node(),
                                     recipe.device.empty() ? "this machine" : recipe.device}
                           .text();
  searched.job_tokens = options.job_tokens ? options.job_tokens : session.job_tokens();
  const plan::TrainingInputs inputs = session.inputs();
  searched.result = plan::search(
      inputs, [&](const plan::Job& job) { return runtime::rehearse(job, session.target()); });
}

// An error about one machine or method is recorded and does not end the search of the others.
SearchedMachine search_one(const Request& request, const SearchOptions& options,
                           const HardwareTable& table, const SearchMachine& machine,
                           formats::Method method) {
  SearchedMachine searched;
  searched.machine = machine.device.empty() ? "" : machine.text();
  searched.method = base::word_of(method);
  try {
    search_in(request, options, table, searched);
  } catch (const base::UserError& error) {
    searched.refusal = error.what();
  }
  return searched;
}

// The built-in hardware table, extended by the recipe's own hardware file.
HardwareTable table_of(formats::Recipe recipe) {
  constexpr std::array<std::string_view, 1> kKeys{"hardware"};
  find_inputs(recipe, kKeys, {});
  return HardwareTable::with_file(recipe.hardware);
}

// Checks the machines before a search that takes seconds: throws for a machine that is unknown, or
// where ranking by cost finds no price.
void check_machines(const std::vector<SearchMachine>& machines, const SearchOptions& options,
                    const formats::Recipe& recipe, const HardwareTable& table) {
  for (const SearchMachine& machine : machines)
    if (!machine.device.empty()) require_row(machine.device, recipe, table);
  if (options.rank_by != RankBy::cost || options.price_per_hour) return;
  const auto has_price = [&](const SearchMachine& machine) {
    const HardwareRow* row = table.find(machine.device.empty() ? recipe.device : machine.device);
    return row != nullptr && row->price;
  };
  if (std::ranges::none_of(machines, has_price))
    base::throw_user_error(
        "rank_by=cost needs a price, and none of these machines has one in the hardware table; "
        "give price_per_hour, or a table of your own with prices as hardware");
}

void check_recipe_out(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    base::throw_user_error("recipe_out {} is a folder; give the name of a file", path.string());
  // An existing file is never overwritten: it may be anything, even the recipe that is searched
  // with.
  if (base::is_there(path))
    base::throw_user_error(
        "recipe_out {} is there already; choose another name, or remove it first", path.string());
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(parent, ignored))
    base::throw_user_error("recipe_out {}: there is no folder {}", path.string(), parent.string());
}

// Reports the setting that comes closest to fitting, among all machines.
[[noreturn]] void refuse(const std::vector<SearchedMachine>& machines) {
  const plan::JudgedSetting* least = nullptr;
  const SearchedMachine* where = nullptr;
  for (const SearchedMachine& machine : machines)
    for (const plan::JudgedSetting& judged : machine.result.judged)
      if (judged.judgement == plan::Judgement::no_device_memory &&
          (least == nullptr || judged.figures.device_bytes < least->figures.device_bytes)) {
        least = &judged;
        where = &machine;
      }
  throw base::UserError(
      fmt::format("no setting of the job fits{}. Give it more memory or devices, a shorter "
                  "max_length, or method=qlora",
                  least == nullptr ? ""
                                   : fmt::format("; the nearest on {} {}", where->machine,
                                                 plan::reason(*least, where->result.budget))),
      {}, plan::kDoesNotFitExitCode);
}

}  // namespace

int search(const Request& request) {
  Request plain = request;
  const SearchOptions options = take_search_options(plain);
  const formats::Recipe recipe = formats::load_recipe(
      // The recipe is read again for each machine, which prints its notes.
      plain.recipe_file, plain.overrides);
  const HardwareTable table = table_of(recipe);
  std::vector<SearchMachine> wanted = options.machines;
  if (wanted.empty()) wanted.push_back({});
  std::vector<formats::Method> methods = options.methods;
  if (methods.empty()) methods.push_back(recipe.method);
  if (!options.recipe_out.empty()) check_recipe_out(options.recipe_out);
  check_machines(wanted, options, recipe, table);
  std::vector<SearchedMachine> machines;
  for (const SearchMachine& machine : wanted)
    for (const formats::Method method : methods) {
      const std::string word = options.methods.empty() ? "" : std::string(base::word_of(method));
      machines.push_back(
          search_one(request_for(plain, machine, word, table.find(machine.device), recipe), options,
                     table, machine, method));
    }
  if (std::ranges::none_of(machines, [](const auto& each) { return each.refusal.empty(); }))
    base::throw_user_error("{}", machines.front().refusal);
  const std::vector<RankedPlan> plans = ranked(machines, options.rank_by);
  base::print("{}", request.json ? report_json(machines, plans) : report_text(machines, plans));
  base::flush_output();
  if (plans.empty()) refuse(machines);
  if (!options.recipe_out.empty())
    base::write_file_atomically(options.recipe_out, best_recipe(plans.front()));
  return 0;
}

}  // namespace snug::cli
