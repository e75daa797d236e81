#include "train/run_folder.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "base/error.h"
#include "base/file.h"
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

// Removes what a run writes, and nothing else that may lie in the folder.
void remove_run(const fs::path& path) {
  for (const auto& checkpoint : runtime::list_checkpoints(path).complete)
    fs::remove_all(checkpoint.path);
  constexpr std::array kNames{"recipe.yaml",   "plan.json", "measured.json",
                              "metrics.jsonl", "adapter",   "model"};
  for (const char* name : kNames) fs::remove_all(path / name);
}

}  // namespace

RunFolder open_run_folder(const formats::Recipe& recipe) {
  const RunFolder folder{recipe.output_dir, checkpoint_of(recipe)};
  const bool resumes = recipe.resume_from_checkpoint != "none";
  if (fs::exists(folder.path) && !fs::is_directory(folder.path))
    base::throw_user_error("output_dir {} is a file; give a folder", recipe.output_dir);
  const bool filled = fs::exists(folder.path) && !fs::is_empty(folder.path);
  if (filled && !resumes && !recipe.overwrite_output_dir)
    base::throw_user_error(
        "output_dir {} exists and is not empty; choose another, continue its run with "
        "resume_from_checkpoint=auto, or replace it with overwrite_output_dir=true",
        recipe.output_dir);
  return folder;
}

void create_run_folder(const RunFolder& folder, const formats::Recipe& recipe) {
  if (fs::exists(folder.path) && recipe.overwrite_output_dir && !folder.checkpoint)
    remove_run(folder.path);
  std::error_code error;
  fs::create_directories(folder.path, error);
  if (error) base::throw_system_error("create", folder.path, error.value());
  base::write_file_atomically(folder.path / "recipe.yaml", formats::to_yaml(recipe));
}

}  // namespace snug::train
