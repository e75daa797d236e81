// `snug audit`: what a run would learn from its data, and what is probably wrong with them. Reads
// the data as training does, with the model's tokenizer and without its weights.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/audit_text.h"
#include "cli/open_target.h"
#include "cli/picture_file.h"
#include "cli/verbs.h"
#include "formats/recipe/recipe.h"
#include "methods/objective.h"
#include "models/config/config.h"
#include "plan/job/rank_grid.h"
#include "plan/spec/resolve.h"
#include "report/audit_page.h"
#include "train/audit.h"
#include "train/data.h"

namespace snug::cli {
namespace {

// https://no-color.org: any text in NO_COLOR asks for none.
bool shows_colour() {
  const char* const unwanted = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && (unwanted == nullptr || *unwanted == '\0') &&
         terminal != nullptr && std::string_view(terminal) != "dumb";
}

// Data of tokens are read without a tokenizer, which may not be there; with it they are text.
std::optional<text::Tokenizer> tokenizer_of_tokens(const formats::Recipe& recipe,
                                                   const models::ModelSource& model) {
  if (model.folder.empty()) return std::nullopt;
  try {
    return text::Tokenizer::from_folder(model.folder.string(), model.config.vocab_size,
                                        recipe.adapter, recipe.added_tokens);
  } catch (const base::UserError& error) {
    base::say("shown as ids: {}", error.what());
    return std::nullopt;
  }
}

text::AuditReport report_of(formats::Recipe recipe) {
  recipe.require("model");
  recipe.require("data");
  const models::ModelSource model = models::find_model(recipe.model);
  recipe = plan::resolve(std::move(recipe), model.config);
  plan::check_step_rows(recipe);
  if (methods::objective_of(recipe.objective).makes_answers)
    recipe.fail("objective",
                fmt::format("is {}, whose data are prompts without answers to look over; snug plan "
                            "says how many there are and how long, and a run shows answers with "
                            "their rewards in samples.jsonl",
                            base::word_of(recipe.objective)));
  // What is learned does not depend on the device, which may be elsewhere.
  if (recipe.device.empty()) recipe.backend = formats::BackendName::cpu;
  const auto target = open_target(recipe);
  train::RunData data = train::load_data(recipe, model, *target);
  if (!data.tokenizer) data.tokenizer = tokenizer_of_tokens(recipe, model);
  formats::Recipe settled = recipe;
  if (recipe.max_length == 0)
    settled =
        train::with_length_of_data({.recipe = recipe, .model = model, .target = *target}, data, 1);
  return train::audit({recipe, settled, model, data}, text::kWholeAudit);
}

}  // namespace

int audit(const Request& request) {
  const formats::Recipe recipe = request.recipe();
  require_picture_file(recipe);
  const text::AuditReport report = report_of(recipe);
  if (request.json)
    base::print("{}\n", audit_json(report));
  else
    // What comes from the data is escaped already; base::print would escape the colours too.
    std::fputs(audit_text(report, shows_colour()).c_str(), stdout);
  base::flush_output();
  if (!recipe.picture.empty()) write_picture(recipe, report::audit_page(report), "audit");
  return 0;
}

}  // namespace snug::cli
