// What the verbs that make a model folder of another one have in common: which folder, what it will
// take before anything is read, and what it took afterwards.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/request.h"
#include "formats/recipe/recipe.h"
#include "runtime/saving/output_folder.h"

namespace snug::cli {

// The recipe's model as a folder with weights. Throws UserError where the recipe names none, or no
// output_dir; `verb` is in the message.
std::string folder_to_convert(const formats::Recipe& recipe, const std::string& verb);

struct FolderConversion {
  std::string summary;          // "7 linears, 5 weights, as NF4"
  nlohmann::ordered_json json;  // the same for machines, first in the document
  runtime::FolderCosts costs;
  std::function<runtime::FolderReport()> write;
};

// Says what it takes, writes, and says what it took. The exit code.
int convert_folder(const Request& request, const formats::Recipe& recipe,
                   const FolderConversion& conversion);

}  // namespace snug::cli
