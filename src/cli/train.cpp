// `snug train`: progress on standard error; with --json the run's measured.json on standard output.
#include <fmt/format.h>

#include <filesystem>

#include "base/console.h"
#include "base/file.h"
#include "cli/verbs.h"
#include "comm/launch.h"
#include "train/train.h"
#ifdef SNUG_WITH_BENCH
#include "bench/quick_calibration.h"
#include "formats/recipe/recipe.h"
#endif

namespace snug::cli {

int train(const Request& request) {
  const formats::Recipe recipe = request.recipe();
  recipe.require("model");
#ifdef SNUG_WITH_BENCH
  const int code = train::train(recipe, bench::calibrate_before_first_run);
#else
  const int code = train::train(recipe);
#endif
  if (request.json && code == 0 && comm::is_first_rank())
    base::print("{}",
                base::read_text_file(std::filesystem::path(recipe.output_dir) / "measured.json"));
  return code;
}

}  // namespace snug::cli
