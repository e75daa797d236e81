#include "train/run_entries.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "formats/data/data_files.h"
#include "formats/folder/directory_transaction.h"
#include "formats/folder/file_list.h"
#include "formats/recipe/method_keys.h"
#include "runtime/saving/checkpoint_folders.h"
#include "train/tensorboard_log.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;

constexpr std::array kEarlyFiles{RunFolder::kRecipe,  RunFolder::kPlan,      RunFolder::kAlgorithms,
                                 RunFolder::kMetrics, RunFolder::kReference, RunFolder::kLog,
                                 RunFolder::kReport,  RunFolder::kSamples,   RunFolder::kRewardLog};
constexpr std::string_view kTemporary = ".snug-tmp";  // base/temporary_file.h
constexpr std::array kResults{RunFolder::kAdapter, RunFolder::kModel, RunFolder::kMerged};

template <typename Names>
bool is_one_of(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What a run writes before its first checkpoint.
bool is_early_file(const std::string& name) {
  return is_one_of(kEarlyFiles, name) || RunFolder::is_rank_log(name) ||
         TensorBoardLog::is_event_file(name);
}

bool is_file_of_run(const std::string& name) {
  return is_early_file(name) || name == RunFolder::kMeasured;
}

bool is_folder_of_run(const std::string& name) {
  return is_one_of(kResults, name) || runtime::step_of(name).has_value();
}

bool is_marked(const fs::path& folder) {
  return fs::is_regular_file(fs::symlink_status(folder / kRunMark));
}

bool replaces_all(const RunFolder& folder, const formats::Recipe& recipe) {
  return recipe.overwrite_output_dir && !folder.goes_on;
}

// What the run will remove or replace, of what is there now; in the order of names.
std::vector<fs::path> doomed_entries(const RunFolder& folder, const formats::Recipe& recipe) {
  std::set<fs::path> doomed;
  for (const auto& entry : base::list_folder(folder.path)) {
    const std::string name = entry.path().filename().string();
    const bool is_result =
        name == (formats::method_keys_of(recipe.method).trains_weights ? RunFolder::kModel
                                                                       : RunFolder::kAdapter) ||
        (recipe.merge && name == RunFolder::kMerged);
    if (is_file_of_run(name) || is_result ||
        (replaces_all(folder, recipe) && is_folder_of_run(name)))
      doomed.insert(entry.path());
  }
  if (recipe.overwrite_output_dir && folder.goes_on)
    for (const auto& checkpoint : runtime::list_checkpoints(folder.path).complete)
      if (checkpoint.step > folder.step) doomed.insert(checkpoint.path);
  return {doomed.begin(), doomed.end()};
}

// What of an entry no run of Snug wrote; nothing when all of it is a run's.
std::optional<std::string> foreign_part(const RunFolder& folder, const fs::path& entry) {
  const std::string name = entry.filename().string();
  // A checkpoint of Snug to go on from tells of a run, too.
  if (!is_marked(folder.path) && !folder.goes_on) return name;
  if (is_file_of_run(name)) {
    if (fs::is_regular_file(fs::symlink_status(entry))) return std::nullopt;
    return name;
  }
  const std::optional<std::string> foreign = formats::foreign_entry(entry);
  if (!foreign) return std::nullopt;
  return (fs::path(name) / *foreign).lexically_normal().string();
}

void check_own(const RunFolder& folder, const formats::Recipe& recipe,
               const std::vector<fs::path>& doomed) {
  for (const fs::path& entry : doomed)
    if (const auto foreign = foreign_part(folder, entry))
      base::throw_user_error(
          "output_dir {} holds {}, which is not as a run of Snug writes it (or is of an earlier "
          "Snug, which did not mark it), and only what a run wrote is removed; move {} away, or "
          "choose another output_dir",
          recipe.output_dir, *foreign, entry.string());
}

// Device and inode: one file has one, whatever its paths and links.
using FileId = std::pair<dev_t, ino_t>;

std::optional<FileId> id_of(const fs::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

// A file, or a folder and what is directly in it: no folder is read deeper.
std::vector<fs::path> read_of(const fs::path& input) {
  std::vector<fs::path> paths{input};
  std::error_code error;
  if (!fs::is_directory(input, error)) return paths;
  for (const auto& entry : base::list_folder(input)) paths.push_back(entry.path());
  return paths;
}

std::vector<std::pair<std::string, std::string>> inputs_of(const RunFolder& folder,
                                                           const formats::Recipe& recipe) {
  std::vector<std::pair<std::string, std::string>> inputs{{"model", recipe.model},
                                                          {"adapter", recipe.adapter},
                                                          {"chat_template", recipe.chat_template},
                                                          {"calibration", recipe.calibration}};
  const auto add = [&](const char* key, const auto& entries, formats::DataUse use) {
    for (const formats::DataEntry& entry : entries)
      for (const std::string& file : formats::data_files(recipe, key, entry, use).files)
        inputs.emplace_back(key, file);
  };
  add("data", recipe.data, formats::DataUse::training);
  add("eval_data", recipe.eval_data, formats::DataUse::evaluation);
  if (folder.checkpoint && !folder.goes_on)
    inputs.emplace_back("resume_from_checkpoint", folder.checkpoint->string());
  std::erase_if(inputs, [](const auto& input) { return !id_of(input.second); });
  return inputs;
}

// Checkpoints that save_total_limit may remove on the way are not to be read either.
std::map<FileId, fs::path> doomed_ids(const RunFolder& folder, const formats::Recipe& recipe,
                                      std::vector<fs::path> doomed) {
  if (folder.goes_on && recipe.save_total_limit > 0)
    for (const auto& checkpoint : runtime::list_checkpoints(folder.path).complete)
      doomed.push_back(checkpoint.path);
  std::map<FileId, fs::path> ids;
  for (const fs::path& entry : doomed)
    for (const fs::path& path : read_of(entry))
      if (const auto id = id_of(path)) ids[*id] = path;
  return ids;
}

void check_unread(const RunFolder& folder, const formats::Recipe& recipe,
                  const std::vector<fs::path>& doomed) {
  const auto ids = doomed_ids(folder, recipe, doomed);
  for (const auto& [key, input] : inputs_of(folder, recipe))
    for (const fs::path& path : read_of(input)) {
      const auto id = id_of(path);
      if (!id || !ids.contains(*id)) continue;
      recipe.fail(key, fmt::format("{} is read from {}, which lies in output_dir and which the run "
                                   "would remove or replace; choose another output_dir",
                                   path.string(), ids.at(*id).string()));
    }
}

// A folder that is to be emptied is no place for what the job reads, whoever wrote it.
void check_outside(const RunFolder& folder, const formats::Recipe& recipe) {
  const fs::path output = fs::weakly_canonical(folder.path);
  for (const auto& [key, value] : inputs_of(folder, recipe)) {
    const fs::path input = fs::canonical(value);
    if (std::mismatch(output.begin(), output.end(), input.begin(), input.end()).first ==
        output.end())
      recipe.fail(key, fmt::format("{} lies in output_dir {}, which overwrite_output_dir empties; "
                                   "choose another output_dir",
                                   value, recipe.output_dir));
  }
}

}  // namespace

void mark_run_folder(const fs::path& folder) {
  if (is_marked(folder)) return;
  base::write_file_atomically(folder / kRunMark,
                              "{\"schema_version\": 1, \"made_by\": \"snug train\"}\n");
}

std::string foreign_to_a_start(const fs::path& folder) {
  const bool is_of_run = is_marked(folder);
  const auto is_early = [&](const std::string& name) {
    if (name == fmt::format("{}{}", kRunMark, kTemporary)) return true;
    return is_of_run &&
           (name == kRunMark || is_early_file(name) ||
            (name.ends_with(kTemporary) &&
             is_one_of(kEarlyFiles, name.substr(0, name.size() - kTemporary.size()))) ||
            (name.starts_with("checkpoint-") && name.find(".snug-tmp-") != std::string::npos));
  };
  std::string first;
  for (const auto& entry : base::list_folder(folder)) {
    const std::string name = entry.path().filename().string();
    if (!is_early(name) && (first.empty() || name < first)) first = name;
  }
  return first;
}

void check_removals(const RunFolder& folder, const formats::Recipe& recipe) {
  if (!fs::is_directory(folder.path)) return;
  if (replaces_all(folder, recipe)) check_outside(folder, recipe);
  const std::vector<fs::path> doomed = doomed_entries(folder, recipe);
  check_unread(folder, recipe, doomed);
  check_own(folder, recipe, doomed);
}

void remove_earlier_run(const RunFolder& folder, const formats::Recipe& recipe) {
  if (!recipe.overwrite_output_dir) return;
  for (const fs::path& entry : doomed_entries(folder, recipe)) {
    const std::string name = entry.filename().string();
    std::error_code error;
    if (runtime::step_of(name) || (!folder.goes_on && is_folder_of_run(name)))
      formats::remove_directory(entry);
    else if (!folder.goes_on)
      fs::remove(entry, error);
    if (error) base::throw_system_error("remove", entry, error.value());
  }
}

}  // namespace snug::train
