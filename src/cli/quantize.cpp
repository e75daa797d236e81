// `snug quantize`: a model folder to one whose linears are NF4. What it will take is said before
// anything is read, what it took afterwards.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/byte_size.h"
#include "base/console.h"
#include "base/error.h"
#include "cli/verbs.h"
#include "models/config.h"
#include "runtime/process_memory.h"
#include "runtime/quantize_folder.h"

namespace snug::cli {
namespace {

using base::readable_byte_size;

std::string folder_of(const formats::Recipe& recipe) {
  recipe.require("model");
  // Its default is a run's folder.
  if (!recipe.is_given("output_dir"))
    base::throw_user_error("snug quantize needs output_dir=FOLDER, the folder to make");
  if (models::preset(recipe.model))
    recipe.fail("model", fmt::format("\"{}\" is a built-in shape without weights; give a model "
                                     "folder",
                                     recipe.model));
  return models::find_model_folder(recipe.model).string();
}

struct Measured {
  runtime::FolderQuantizeReport report;
  int64_t resident_peak_bytes = 0;
};

double gigabytes_per_second(const runtime::FolderQuantizePlan& plan, const Measured& measured) {
  return static_cast<double>(plan.source_bytes) / 1e9 / measured.report.seconds;
}

void print_plan(const formats::Recipe& recipe, const runtime::FolderQuantizePlan& plan,
                int64_t outside_bytes) {
  base::print("{} to {}: {} linears, {} weights, as NF4{}\n", recipe.model, recipe.output_dir,
              plan.linears, plan.linear_weights,
              recipe.double_quant ? ", their scales in 8 bits" : "");
  base::print("reads  {:>12}\nwrites {:>12} at most\n", readable_byte_size(plan.source_bytes),
              readable_byte_size(plan.result_bytes));
  base::print("memory {:>12} of buffers, and {} of the process\n",
              readable_byte_size(plan.buffer_bytes), readable_byte_size(outside_bytes));
  base::flush_output();
}

void print_json(const runtime::FolderQuantizePlan& plan, int64_t outside_bytes,
                const Measured& measured) {
  const nlohmann::ordered_json json{
      {"linears", plan.linears},
      {"linear_weights", plan.linear_weights},
      {"source_bytes", plan.source_bytes},
      {"planned",
       {{"result_bytes", plan.result_bytes},
        {"buffer_bytes", plan.buffer_bytes},
        {"outside_bytes", outside_bytes}}},
      {"measured",
       {{"result_bytes", measured.report.result_bytes},
        {"resident_peak_bytes", measured.resident_peak_bytes},
        {"seconds", measured.report.seconds},
        {"gigabytes_per_second", gigabytes_per_second(plan, measured)}}}};
  base::print("{}\n", json.dump(2));
}

}  // namespace

int quantize(const Request& request) {
  const formats::Recipe recipe = request.recipe();
  if (recipe.compute_dtype == formats::ComputeDtype::fp16)
    recipe.fail("compute_dtype",
                "is fp16, but what is stored in 32 bits is rounded to bf16 or stays; use auto or "
                "fp32. A folder in fp16 is quantised as it is");
  const runtime::FolderQuantizer quantizer(
      folder_of(recipe), {.double_quant = recipe.double_quant,
                          .keep_fp32 = recipe.compute_dtype == formats::ComputeDtype::fp32,
                          .head = recipe.load_head_in_4bit});
  const runtime::FolderQuantizePlan& plan = quantizer.plan();
  const int64_t outside_bytes = runtime::outside_bytes();
  if (!request.json) print_plan(recipe, plan, outside_bytes);
  Measured measured{.report = quantizer.write(recipe.output_dir)};
  measured.resident_peak_bytes = runtime::process_memory().resident_peak_bytes;
  if (request.json)
    print_json(plan, outside_bytes, measured);
  else
    base::print("wrote  {:>12} in {:.2f} s, {:.2f} GB/s of the source; resident peak {}\n",
                readable_byte_size(measured.report.result_bytes), measured.report.seconds,
                gigabytes_per_second(plan, measured),
                readable_byte_size(measured.resident_peak_bytes));
  return 0;
}

}  // namespace snug::cli
