#include "train/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "runtime/checkpoint.h"
#include "runtime/checkpoint_folders.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> checkpoint_of(const formats::Recipe& recipe) {
  if (recipe.resume_from_checkpoint == "none") return std::nullopt;
  if (recipe.resume_from_checkpoint == "auto") {
    for (const std::string& reason : runtime::list_checkpoints(recipe.output_dir).ignored)
      fmt::print(stderr, "passed over: {}\n", reason);
    return runtime::find_latest_checkpoint(recipe.output_dir);
  }
  if (!fs::is_directory(recipe.resume_from_checkpoint))
    recipe.fail("resume_from_checkpoint", fmt::format("\"{}\" is no folder; give a checkpoint-N "
                                                      "folder, auto or none",
                                                      recipe.resume_from_checkpoint));
  return recipe.resume_from_checkpoint;
}

// What a run writes before its first checkpoint, beside temporary files of these names.
constexpr std::array kEarlyNames{"recipe.yaml", "plan.json", RunFolder::kAlgorithms,
                                 "metrics.jsonl"};

// Removes what a run writes, and nothing else that may lie in the folder.
void remove_run(const fs::path& path) {
  for (const auto& checkpoint : runtime::list_checkpoints(path).complete)
    fs::remove_all(checkpoint.path);
  for (const char* name : kEarlyNames) fs::remove_all(path / name);
  for (const char* name : {"measured.json", "adapter", "model"}) fs::remove_all(path / name);
}

bool is_early(const std::string& name) {
  return std::any_of(kEarlyNames.begin(), kEarlyNames.end(),
                     [&](const char* early) {
                       return name == early || name.starts_with(fmt::format("{}.tmp", early));
                     }) ||
         (name.starts_with("checkpoint-") && name.find(".tmp-") != std::string::npos);
}

// The first entry, by name, that a run which was killed before its first checkpoint would not have
// left; empty when there is none.
std::string foreign_entry(const fs::path& path) {
  std::string first;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (!is_early(name) && (first.empty() || name < first)) first = name;
  }
  return first;
}

// The folder that a checkpoint lies in, whatever its path ends with.
fs::path folder_of(const fs::path& checkpoint) {
  std::error_code error;
  return fs::canonical(checkpoint, error).parent_path();
}

bool lies_in(const fs::path& checkpoint, const fs::path& folder) {
  std::error_code error;
  return fs::equivalent(folder_of(checkpoint), folder, error);
}

// A run that goes on from an earlier step would count again what the later checkpoints count.
void check_newest(const RunFolder& folder, const formats::Recipe& recipe) {
  const runtime::CheckpointList list = runtime::list_checkpoints(folder.path);
  if (list.complete.empty() || recipe.overwrite_output_dir) return;
  const int64_t newest = list.complete.back().step;
  if (newest <= folder.step) return;
  recipe.fail("resume_from_checkpoint",
              fmt::format("is step {} of {}, which has later checkpoints, up to step {}; go on in "
                          "another output_dir, or drop those with overwrite_output_dir=true",
                          folder.step, recipe.output_dir, newest));
}

// Throws unless the folder is free, or is that of the run which goes on here.
void check_free(const RunFolder& folder, const formats::Recipe& recipe) {
  if (!fs::exists(folder.path)) return;
  if (!fs::is_directory(folder.path))
    base::throw_user_error("output_dir {} is a file; give a folder", recipe.output_dir);
  if (fs::is_empty(folder.path) || folder.goes_on || recipe.overwrite_output_dir) return;
  if (recipe.resume_from_checkpoint == "none")
    base::throw_user_error(
        "output_dir {} exists and is not empty; choose another, continue its run with "
        "resume_from_checkpoint=auto, or replace it with overwrite_output_dir=true",
        recipe.output_dir);
  if (folder.checkpoint)
    base::throw_user_error(
        "output_dir {} exists and is not empty, and the checkpoint {} is not of its run; choose "
        "another output_dir, or replace this one with overwrite_output_dir=true",
        recipe.output_dir, folder.checkpoint->string());
  if (const std::string name = foreign_entry(folder.path); !name.empty())
    base::throw_user_error(
        "output_dir {} exists and is not empty, and holds no checkpoint to resume from, but {}; "
        "choose another, or replace it with overwrite_output_dir=true",
        recipe.output_dir, name);
}

}  // namespace

std::optional<fs::path> RunFolder::earlier_algorithms() const {
  if (!checkpoint) return std::nullopt;
  return folder_of(*checkpoint) / kAlgorithms;
}

RunFolder open_run_folder(const formats::Recipe& recipe) {
  RunFolder folder{recipe.output_dir, checkpoint_of(recipe)};
  folder.goes_on = folder.checkpoint && lies_in(*folder.checkpoint, folder.path);
  if (folder.goes_on) {
    folder.step = runtime::read_checkpoint_state(*folder.checkpoint).step;
    check_newest(folder, recipe);
  }
  check_free(folder, recipe);
  return folder;
}

void create_run_folder(const RunFolder& folder, const formats::Recipe& recipe) {
  if (recipe.overwrite_output_dir && folder.goes_on)
    runtime::remove_later_checkpoints(folder.path, folder.step);
  else if (recipe.overwrite_output_dir && fs::exists(folder.path))
    remove_run(folder.path);
  std::error_code error;
  fs::create_directories(folder.path, error);
  if (error) base::throw_system_error("create", folder.path, error.value());
  base::write_file_atomically(folder.path / "recipe.yaml", formats::to_yaml(recipe));
}

}  // namespace snug::train
