#include "runtime/process/job_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <fstream>
#include <utility>
#include <vector>

#include "base/build_id.h"
#include "base/console.h"
#include "base/error.h"
#include "comm/processor_share.h"
#include "comm/self_launch.h"
#include "comm/split.h"
#include "formats/recipe/recipe_keys.h"
#include "plan/job/rank_grid.h"
#include "runtime/process/ranks.h"

namespace snug::runtime {
namespace {

void check_size(const formats::Recipe& recipe, const comm::Launch& launch) {
  const int64_t planned = recipe.rank_count();
  if (planned != launch.size)
    recipe.fail("devices",
                fmt::format("and nodes make {} ranks, but the launcher started {}; start as many "
                            "processes as there are devices, or leave devices and nodes out",
                            planned, launch.size));
}

// The values that must be the same on every rank, key by key, so that an error names the key that
// differs.
std::vector<comm::NamedValue> given_values(const formats::Recipe& recipe) {
  std::vector<comm::NamedValue> values{{"the version of snug", SNUG_VERSION},
                                       {"the build of snug", base::build_id()}};
  for (const formats::RecipeKey& key : formats::recipe_keys())
    if (key.field.get != nullptr)
      values.push_back({std::string(key.name), formats::value_text(key, key.field.get(recipe))});
  return values;
}

// The command-line arguments of this process, without its name.
std::vector<std::string> own_arguments() {
  std::ifstream stream("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(stream, argument, '\0');) arguments.push_back(argument);
  if (!arguments.empty()) arguments.erase(arguments.begin());
  return arguments;
}

}  // namespace

Ranks Ranks::join(const formats::Recipe& recipe) {
  Ranks ranks;
  ranks.launch_ = comm::read_launch(comm::environment());
  const bool asks_for_several = recipe.devices > 1 || recipe.nodes > 1;
  if (ranks.launch_.launcher == comm::Launcher::none) {
    if (!asks_for_several) return ranks;
    if (recipe.nodes > 1)
      recipe.fail("nodes",
                  fmt::format("is {}, but this process was started alone; start one process for "
                              "each device with mpirun or srun",
                              recipe.nodes));
    // An impossible recipe is refused before anything is started.
    plan::rank_grid(recipe);
    plan::check_step_rows(recipe);
    comm::launch_ranks(static_cast<int>(recipe.devices), own_arguments());
  }
  if (ranks.launch_.size > 1)
    ranks.world_ = comm::connect(
        ranks.launch_, {.timeout = std::chrono::seconds(recipe.timeout_seconds), .mpi_folder = {}});
  ranks.mesh_.all = ranks.world_.get();
  ranks.mesh_.local_rank = ranks.launch_.local_rank;
  try {
    ranks.agree_on(recipe);
  } catch (const std::exception& error) {
    ranks.end_with(error);
    throw;
  }
  return ranks;
}

void Ranks::agree_on(const formats::Recipe& recipe) {
  formats::Recipe as_launched = recipe;
  settle(as_launched.devices, as_launched.nodes, as_launched.threads);
  check_size(as_launched, launch_);
  plan::check_step_rows(as_launched);
  const passes::ShardingOptions grid = plan::rank_grid(as_launched);
  if (size() == 1) return;
  // Checked before anything that ranks with different recipes would do differently.
  require_same(given_values(as_launched));
  share_processors();
  if (grid.shards > 1) {
    shards_ = comm::split(*world_, rank() / grid.shards, rank());
    mesh_.shards = shards_.get();
  }
  if (grid.replicas > 1) {
    replicas_ = comm::split(*world_, rank() % grid.shards, rank());
    mesh_.replicas = replicas_.get();
  }
}

void Ranks::settle(int64_t& devices, int64_t& nodes, int64_t& threads) const {
  if (threads == 0) threads = threads_;
  if (launch_.size == 1) return;
  if (devices == 0) devices = launch_.local_size;
  if (nodes == 0) nodes = std::max(1, launch_.size / launch_.local_size);
}

void Ranks::share_processors() {
  std::vector<comm::ProcessorUse> uses;
  for (const std::string& text :
       mesh_.all->all_gather_text(comm::to_text(comm::own_processor_use())))
    uses.push_back(comm::processor_use_of(text));
  threads_ = comm::threads_of_ranks(uses);
}

std::vector<std::string> Ranks::of_all(std::string_view text) const {
  if (size() == 1) return {std::string(text)};
  return mesh_.all->all_gather_text(text);
}

int64_t Ranks::least(int64_t value) const {
  int64_t least = value;
  for (const std::string& other : of_all(std::to_string(value)))
    least = std::min<int64_t>(least, std::stoll(other));
  return least;
}

std::string Ranks::of_first(std::string_view text) const {
  if (size() == 1) return std::string(text);
  return mesh_.all->all_gather_text(is_first() ? text : std::string_view()).front();
}

std::string Ranks::decided_by_first(const std::function<std::string()>& decide) const {
  return of_first(is_first() ? decide() : std::string());
}

void Ranks::wait_for_all() const {
  if (size() > 1) mesh_.all->barrier();
}

void Ranks::on_all(const std::function<void()>& work) const { on_all_ranks(mesh_, work); }

void Ranks::require_same(std::span<const comm::NamedValue> values) const {
  if (size() > 1) comm::require_agreement(*mesh_.all, values);
}

StopRequest Ranks::agree(const StopRequest& own) const {
  if (size() == 1) return own;
  const std::string text = fmt::format("{}{}", own.fails ? '!' : ' ', own.signal);
  StopRequest all;
  for (const std::string& each : mesh_.all->all_gather_text(text)) {
    int signal = 0;
    std::from_chars(each.data() + 1, each.data() + each.size(), signal);
    all.fails = all.fails || each.front() == '!';
    if (signal != 0 && (all.signal == 0 || signal < all.signal)) all.signal = signal;
  }
  return all;
}

void Ranks::set_step(int64_t step) const {
  for (comm::Communicator* group : {mesh_.all, mesh_.shards, mesh_.replicas})
    if (group != nullptr) group->set_step(step);
}

void Ranks::end_with(const std::exception& error) const {
  if (size() == 1) return;
  std::signal(SIGTERM, SIG_IGN);
  const comm::Ending ending = ending_of(error);
  if (!comm::is_to_say(*mesh_.all, ending)) return base::leave_console_to_others();
  if (is_first()) return;
  const bool names_ranks = ending.text.starts_with("rank ") || ending.text.starts_with("ranks ");
  base::say_last_line(names_ranks ? ending.text : fmt::format("rank {}: {}", rank(), ending.text));
}

}  // namespace snug::runtime
