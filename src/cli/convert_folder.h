// The shared steps of the verbs that convert a model folder into another one: find the source
// folder, announce what the conversion will need before anything is read, and report what it needed
// afterwards.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/request.h"
#include "convert/folder/output_folder.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {

// The folder of the recipe's model, which must hold weights. Throws UserError where the recipe
// names no such folder, or no output_dir; the message names `verb`.
std::string folder_to_convert(const formats::Recipe& recipe, const std::string& verb);

// Throws UserError where the recipe names no output_dir: the default of the key is meant for
// training runs.
void require_output_dir(const formats::Recipe& recipe, const std::string& verb);

struct FolderConversion {
  std::string summary;          // "7 linears, 5 weights, as NF4"
  nlohmann::ordered_json json;  // the same for machines, first in the document
  std::string source{};         // what is converted; empty: the recipe's model
  convert::FolderCosts costs;
  std::function<convert::FolderReport()> write;
};

// Announces what the conversion needs, writes the folder, and reports the result. Returns the exit
// code.
int convert_folder(const Request& request, const formats::Recipe& recipe,
                   const FolderConversion& conversion);

}  // namespace snug::cli
