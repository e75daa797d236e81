// `snug quantize`: converts a model folder to one with NF4 linears.
#include <fmt/format.h>

#include "base/console.h"
#include "cli/convert_folder.h"
#include "cli/verbs.h"
#include "convert/folder/quantize_folder.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {

int quantize(const Request& request) {
  const formats::Recipe recipe = request.recipe();
  if (recipe.compute_dtype == formats::ComputeDtype::fp16)
    recipe.fail("compute_dtype",
                "is fp16, but what is stored in 32 bits is rounded to bf16 or stays; use auto or "
                "fp32. A folder in fp16 is quantised as it is");
  const convert::FolderQuantizer quantizer(
      folder_to_convert(recipe, "quantize"),
      {.double_quant = recipe.double_quant,
       .keep_fp32 = recipe.compute_dtype == formats::ComputeDtype::fp32,
       .head = recipe.load_head_in_4bit});
  const convert::FolderQuantizePlan& plan = quantizer.plan();
  if (plan.for_snug_alone)
    base::say(
        "{}: transformers 5 leaves the linear layers of this family in 16 bits, and will not load "
        "the folder; snug does, and transformers up to 5.0. An adapter that is tuned on it fits "
        "the folder in 16 bits in PEFT (docs/nf4.md)",
        recipe.model);
  return convert_folder(
      request, recipe,
      {.summary = fmt::format("{} linears, {} weights, as NF4{}", plan.linears, plan.linear_weights,
                              recipe.double_quant ? ", their scales in 8 bits" : ""),
       .json = {{"linears", plan.linears}, {"linear_weights", plan.linear_weights}},
       .costs = plan,
       .write = [&] { return quantizer.write(recipe.output_dir); }});
}

}  // namespace snug::cli
