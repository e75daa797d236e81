// `snug train`: progress on standard error; with --json the run's measured.json on standard output.
#include <fmt/format.h>

#include <filesystem>

#include "base/console.h"
#include "base/file.h"
#include "cli/merge_after_run.h"
#include "cli/run_card.h"
#include "cli/verbs.h"
#include "comm/launch.h"
#include "formats/recipe/recipe.h"
#include "train/run_folder.h"
#include "train/train.h"
#ifdef SNUG_WITH_BENCH
#include "bench/quick_calibration.h"
#endif

namespace snug::cli {

int train(const Request& request) {
  const formats::Recipe recipe = request.recipe();
  recipe.require("model");
  if (recipe.merge) check_merge_of_run(recipe);
  const train::AfterRun after = [](const formats::Recipe& run) {
    write_run_card(run);
    return run.merge ? merge_after_run(run) : 0;
  };
#ifdef SNUG_WITH_BENCH
  const train::MeasureMachine measure = bench::calibrate_before_first_run;
#else
  const train::MeasureMachine measure;
#endif
  const int code = train::train(recipe, measure, after);
  const bool is_done = code == 0 || code == kNotAsItIs;
  if (request.json && is_done && comm::is_first_rank())
    base::print("{}", base::read_text_file(std::filesystem::path(recipe.output_dir) /
                                           train::RunFolder::kMeasured));
  return code;
}

}  // namespace snug::cli
