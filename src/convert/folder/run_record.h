// What a run of Snug wrote next to its adapter, as far as it is there: for the card of what is made
// of the adapter. Nothing of it names a place on a machine: files are named without their folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace snug::convert {

// A source of a run's data.
struct RecordedSource {
  std::string name;  // of a data set of the hub, or of a file
  bool evaluates = false;
  int64_t records = 0;
  int64_t documents = 0;
  int64_t tokens = 0;
  int64_t trained_tokens = 0;
};

// A figure that a run planned and measured.
struct RecordedFigure {
  std::string name;
  std::string planned;  // empty: it was not
  std::string measured;
};

struct RunRecord {
  std::string recipe{};  // YAML of what was said, without places; empty: there is none
  std::string model{};   // as the recipe names it
  std::vector<std::string> tags{};
  std::vector<std::string> hub_data_sets{};
  std::vector<RecordedSource> sources{};
  std::vector<RecordedFigure> figures{};
  int64_t steps = 0;
  double epochs = 0;
  std::optional<double> first_loss{};
  std::optional<double> last_loss{};
  std::optional<double> evaluation_loss{};
};

// Files that are missing, or not as this program writes them, are passed over.
RunRecord read_run(const std::filesystem::path& folder);
// Null where there is no such file, or it is no JSON.
nlohmann::json readable_json(const std::filesystem::path& file);

// A place as anybody may read it: the name of a repository of the hub as it is, of any path the
// last part.
std::string public_name(const std::string& place);
// Whether it is the name of a repository of the hub, as far as this machine can tell: of the form
// org/name, and no path that is here.
bool is_hub_name(const std::string& place);

}  // namespace snug::convert
