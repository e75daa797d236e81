// `snug dequantize`: converts a model folder with MXFP4 experts or FP8 linears to one in bf16.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/convert_folder.h"
#include "cli/verbs.h"
#include "convert/folder/dequantize_folder.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {

int dequantize(const Request& request) {
  const formats::Recipe recipe = request.recipe();
  const convert::FolderDequantizer dequantizer(folder_to_convert(recipe, "dequantize"));
  const convert::FolderDequantizePlan& plan = dequantizer.plan();
  const bool is_fp8 = plan.linears > 0;
  return convert_folder(
      request, recipe,
      {.summary = is_fp8 ? fmt::format("{} linears, {} weights, from FP8 to bf16", plan.linears,
                                       plan.linear_weights)
                         : fmt::format("{} stacks of experts, {} weights, from MXFP4 to bf16",
                                       plan.stacks, plan.stack_weights),
       .json =
           is_fp8
               ? nlohmann::json{{"linears", plan.linears}, {"linear_weights", plan.linear_weights}}
               : nlohmann::json{{"stacks", plan.stacks}, {"stack_weights", plan.stack_weights}},
       .costs = plan,
       .write = [&] { return dequantizer.write(recipe.output_dir); }});
}

}  // namespace snug::cli
