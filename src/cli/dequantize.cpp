// `snug dequantize`: converts a model folder with MXFP4 experts to one in bf16.
#include <fmt/format.h>

#include "cli/convert_folder.h"
#include "cli/verbs.h"
#include "convert/folder/dequantize_folder.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {

int dequantize(const Request& request) {
  const formats::Recipe recipe = request.recipe();
  const convert::FolderDequantizer dequantizer(folder_to_convert(recipe, "dequantize"));
  const convert::FolderDequantizePlan& plan = dequantizer.plan();
  return convert_folder(
      request, recipe,
      {.summary = fmt::format("{} stacks of experts, {} weights, from MXFP4 to bf16", plan.stacks,
                              plan.stack_weights),
       .json = {{"stacks", plan.stacks}, {"stack_weights", plan.stack_weights}},
       .costs = plan,
       .write = [&] { return dequantizer.write(recipe.output_dir); }});
}

}  // namespace snug::cli
