#include "train/check_before_ranks.h"

#include <algorithm>

#include "base/threads.h"
#include "comm/launch.h"
#include "formats/data/data_files.h"
#include "models/config/config.h"
#include "plan/spec/resolve.h"
#include "plan/spec/spec.h"
#include "runtime/loading/load_weights.h"
#include "text/record/record_reader.h"

namespace snug::train {
namespace {

// Ranks on one processor take turns and wait for each other: more than a few are a slip of the pen,
// or a configuration that was made for another machine.
void check_processors(const formats::Recipe& recipe) {
  constexpr int64_t kRanksOfOne = 8;
  constexpr int64_t kRanksOfAny = 16;
  const auto processors = std::ssize(base::allowed_processors());
  const int64_t most = std::max(kRanksOfAny, kRanksOfOne * processors);
  if (recipe.devices > most)
    recipe.fail("devices",
                fmt::format("is {}, and this machine has {} processors, which would take turns; "
                            "give at most {}, or start them by yourself: mpirun --oversubscribe "
                            "-n {} snug ...",
                            recipe.devices, processors, most, recipe.devices));
}

}  // namespace

void check_before_ranks(const formats::Recipe& recipe) {
  const bool is_alone = comm::read_launch(comm::environment()).launcher == comm::Launcher::none;
  if (!is_alone || recipe.devices <= 1) return;
  check_processors(recipe);
  const models::ModelSource model = runtime::open_model(recipe);
  const formats::Recipe resolved = plan::resolve(recipe, model.config);
  const auto check = [&](const char* key, const auto& entries, formats::DataUse use) {
    for (const formats::DataEntry& entry : entries)
      for (const std::string& file : formats::data_files(resolved, key, entry, use).files)
        text::RecordReader{file};
  };
  check("data", resolved.data, formats::DataUse::training);
  check("eval_data", resolved.eval_data, formats::DataUse::evaluation);
}

}  // namespace snug::train
