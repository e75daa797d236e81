// Runs next to each other: as a table, by the keys in which their recipes differ, and by their
// curves; as text, and as one HTML page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/run_summary.h"

namespace snug::cli {

// A row for each run, under a header.
std::vector<std::vector<std::string>> run_table(std::span<const RunSummary> runs);
// A row for each key whose value is not the same in all runs, under a header of their names; a key
// that a recipe does not have is "-" there. The folder of a run is no difference.
std::vector<std::vector<std::string>> recipe_differences(std::span<const RunSummary> runs);

// The table as text, its columns as wide as they must be.
std::string table_text(const std::vector<std::vector<std::string>>& rows);
// The differences of the recipes, and charts of the losses.
std::string comparison_text(std::span<const RunSummary> runs);
std::string comparison_page(std::span<const RunSummary> runs);
nlohmann::ordered_json json_of(const RunSummary& run);

}  // namespace snug::cli
