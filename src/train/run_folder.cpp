#include "train/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>

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

// What is emptied must not hold what the job reads.
void check_inputs(const RunFolder& folder, const formats::Recipe& recipe) {
  const fs::path output = fs::weakly_canonical(folder.path);
  for (const auto& [key, value] : {std::pair{"model", recipe.model},
                                   {"adapter", recipe.adapter},
                                   {"data", recipe.data},
                                   {"eval_data", recipe.eval_data},
                                   {"chat_template", recipe.chat_template},
                                   {"calibration", recipe.calibration}}) {
    if (value.empty() || !fs::exists(value)) continue;
    const fs::path input = fs::canonical(value);
    if (std::mismatch(output.begin(), output.end(), input.begin(), input.end()).first ==
        output.end())
      recipe.fail(key, fmt::format("{} lies in output_dir {}, which overwrite_output_dir empties; "
                                   "choose another output_dir",
                                   value, recipe.output_dir));
  }
}

void take_lock(RunFolder& folder) {
  folder.lock = base::File::open_folder(folder.path);
  if (!folder.lock->try_lock())
    base::throw_user_error(
        "another run is writing to output_dir {}; wait for its end, or choose another folder",
        folder.path.string());
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
  RunFolder folder;
  folder.path = recipe.output_dir;
  if (fs::is_directory(folder.path)) take_lock(folder);
  folder.checkpoint = checkpoint_of(recipe);
  folder.goes_on = folder.checkpoint && lies_in(*folder.checkpoint, folder.path);
  if (folder.goes_on) {
    folder.step = runtime::read_checkpoint_state(*folder.checkpoint).step;
    check_newest(folder, recipe);
  }
  check_free(folder, recipe);
  base::require_writable_folder(folder.path);
  if (recipe.overwrite_output_dir && !folder.goes_on) check_inputs(folder, recipe);
  return folder;
}

void create_run_folder(RunFolder& folder, const formats::Recipe& recipe) {
  std::error_code error;
  fs::create_directories(folder.path, error);
  if (error) base::throw_system_error("create", folder.path, error.value());
  if (!folder.lock) {
    take_lock(folder);
    check_free(folder, recipe);
  }
  if (recipe.overwrite_output_dir && folder.goes_on)
    runtime::remove_later_checkpoints(folder.path, folder.step);
  else if (recipe.overwrite_output_dir)
    remove_run(folder.path);
  base::write_file_atomically(folder.path / "recipe.yaml", formats::to_yaml(recipe));
}

}  // namespace snug::train
