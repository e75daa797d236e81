// `snug merge`: merges an adapter into its model.
#include <fmt/format.h>

#include "cli/convert_folder.h"
#include "cli/verbs.h"
#include "convert/folder/merge_folder.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {

int merge(const Request& request) {
  const formats::Recipe recipe = request.recipe();
  require_output_dir(recipe, "merge");
  const convert::MergeInputs inputs = convert::merge_inputs(recipe);
  const convert::FolderMerger merger(inputs);
  const convert::FolderMergePlan& plan = merger.plan();
  return convert_folder(request, recipe,
                        {.summary = fmt::format("{} of {} tensors changed by {}", plan.changed,
                                                plan.tensors, inputs.adapter.string()),
                         .json = {{"model", inputs.model.string()},
                                  {"adapter", inputs.adapter.string()},
                                  {"tensors", plan.tensors},
                                  {"changed", plan.changed}},
                         .source = inputs.model.string(),
                         .costs = plan,
                         .write = [&] { return merger.write(recipe.output_dir); }});
}

}  // namespace snug::cli
