#include "cli/convert_folder.h"

#include <fmt/format.h>

#include "base/byte_size.h"
#include "base/console.h"
#include "base/error.h"
#include "models/config/config.h"
#include "runtime/process/process_memory.h"

namespace snug::cli {
namespace {

using base::readable_byte_size;
using convert::FolderCosts;

struct Measured {
  convert::FolderReport report;
  int64_t resident_peak_bytes = 0;
};

double gigabytes_per_second(const FolderCosts& costs, const Measured& measured) {
  return static_cast<double>(costs.source_bytes) / 1e9 / measured.report.seconds;
}

void print_costs(const formats::Recipe& recipe, const FolderConversion& conversion,
                 int64_t outside_bytes) {
  const FolderCosts& costs = conversion.costs;
  base::print("{} to {}: {}\n", conversion.source.empty() ? recipe.model : conversion.source,
              recipe.output_dir, conversion.summary);
  base::print("reads  {:>12}\nwrites {:>12} at most\n", readable_byte_size(costs.source_bytes),
              readable_byte_size(costs.result_bytes));
  base::print("memory {:>12} of buffers, and {} of the process\n",
              readable_byte_size(costs.buffer_bytes), readable_byte_size(outside_bytes));
  base::flush_output();
}

void print_measured(const FolderConversion& conversion, const Measured& measured) {
  base::print("wrote  {:>12} in {:.2f} s, {:.2f} GB/s of the source; resident peak {}\n",
              readable_byte_size(measured.report.result_bytes), measured.report.seconds,
              gigabytes_per_second(conversion.costs, measured),
              readable_byte_size(measured.resident_peak_bytes));
}

void print_json(const FolderConversion& conversion, int64_t outside_bytes,
                const Measured& measured) {
  nlohmann::ordered_json json = conversion.json;
  json["source_bytes"] = conversion.costs.source_bytes;
  json["planned"] = {{"result_bytes", conversion.costs.result_bytes},
                     {"buffer_bytes", conversion.costs.buffer_bytes},
                     {"outside_bytes", outside_bytes}};
  json["measured"] = {{"result_bytes", measured.report.result_bytes},
                      {"resident_peak_bytes", measured.resident_peak_bytes},
                      {"seconds", measured.report.seconds},
                      {"gigabytes_per_second", gigabytes_per_second(conversion.costs, measured)}};
  base::print("{}\n", json.dump(2));
}

}  // namespace

void require_output_dir(const formats::Recipe& recipe, const std::string& verb) {
  if (!recipe.is_given("output_dir"))
    base::throw_user_error("snug {} needs output_dir=FOLDER, the folder to make", verb);
}

std::string folder_to_convert(const formats::Recipe& recipe, const std::string& verb) {
  recipe.require("model");
  require_output_dir(recipe, verb);
  if (models::preset(recipe.model))
    recipe.fail("model", fmt::format("\"{}\" is a built-in shape without weights; give a model "
                                     "folder",
                                     recipe.model));
  return models::find_model_folder(recipe.model).string();
}

int convert_folder(const Request& request, const formats::Recipe& recipe,
                   const FolderConversion& conversion) {
  const int64_t outside_bytes = runtime::outside_bytes();
  if (!request.json) print_costs(recipe, conversion, outside_bytes);
  Measured measured{.report = conversion.write()};
  measured.resident_peak_bytes = runtime::process_memory().resident_peak_bytes;
  if (request.json)
    print_json(conversion, outside_bytes, measured);
  else
    print_measured(conversion, measured);
  return 0;
}

}  // namespace snug::cli
