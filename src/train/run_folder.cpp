#include "train/run_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "formats/folder/directory_transaction.h"
#include "runtime/saving/checkpoint.h"
#include "runtime/saving/checkpoint_folders.h"
#include "train/run_entries.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> checkpoint_of(const formats::Recipe& recipe) {
  if (recipe.resume() == formats::Resume::none) return std::nullopt;
  if (recipe.resume() == formats::Resume::automatic) {
    for (const std::string& reason : runtime::list_checkpoints(recipe.output_dir).ignored)
      base::say("passed over: {}", reason);
    return runtime::find_latest_checkpoint(recipe.output_dir);
  }
  if (!fs::is_directory(recipe.resume_from_checkpoint))
    recipe.fail(
        "resume_from_checkpoint",
        fmt::format("\"{}\" is no folder; give a checkpoint-N folder, {} or {}",
                    recipe.resume_from_checkpoint, base::word_of(formats::Resume::automatic),
                    base::word_of(formats::Resume::none)));
  return recipe.resume_from_checkpoint;
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

void take_lock(RunFolder& folder) {
  folder.lock = FolderLock::take(folder.path);
  if (!folder.lock)
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
  if (recipe.resume() == formats::Resume::none)
    base::throw_user_error(
        "output_dir {} exists and is not empty; choose another, continue its run with "
        "resume_from_checkpoint=auto, or replace it with overwrite_output_dir=true",
        recipe.output_dir);
  if (folder.checkpoint)
    base::throw_user_error(
        "output_dir {} exists and is not empty, and the checkpoint {} is not of its run; choose "
        "another output_dir, or replace this one with overwrite_output_dir=true",
        recipe.output_dir, folder.checkpoint->string());
  if (const std::string name = foreign_to_a_start(folder.path); !name.empty())
    base::throw_user_error(
        "output_dir {} exists and is not empty, and holds no checkpoint to resume from, but {}; "
        "choose another, or replace it with overwrite_output_dir=true",
        recipe.output_dir, name);
}

void create_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) base::throw_system_error("create", path, error.value());
}

// OUTPUT_DIR-rescued, or with the first number that is free. Nobody else has made it.
fs::path create_rescue_folder(const fs::path& output_dir) {
  fs::path first = output_dir.lexically_normal();
  if (!first.has_filename()) first = first.parent_path();
  first += "-rescued";
  if (first.has_parent_path()) create_folder(first.parent_path());
  fs::path path = first;
  for (int number = 2;; ++number) {
    std::error_code error;
    if (fs::create_directory(path, error)) return path;
    if (error && !fs::exists(path)) base::throw_system_error("create", path, error.value());
    path = first;
    path += fmt::format("-{}", number);
  }
}

}  // namespace

std::optional<fs::path> RunFolder::earlier_algorithms() const {
  if (!checkpoint) return std::nullopt;
  return folder_of(*checkpoint) / kAlgorithms;
}

namespace {

RunFolder open_alone(const formats::Recipe& recipe) {
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
  if (folder.checkpoint) runtime::require_optimizer_state(*folder.checkpoint);
  base::require_writable_folder(folder.path);
  check_removals(folder, recipe);
  return folder;
}

// What the first rank decided, for the others.
std::string to_text(const RunFolder& folder) {
  return nlohmann::json{{"path", folder.path.string()},
                        {"checkpoint", folder.checkpoint ? folder.checkpoint->string() : ""},
                        {"goes_on", folder.goes_on},
                        {"step", folder.step}}
      .dump();
}

RunFolder from_text(const std::string& text) {
  const nlohmann::json document = base::parse_json(text, "what the first rank decided");
  const base::JsonObject read(document, "what the first rank decided");
  RunFolder folder;
  folder.path = read.text("path");
  if (const std::string checkpoint = read.text("checkpoint"); !checkpoint.empty())
    folder.checkpoint = checkpoint;
  folder.goes_on = read.boolean("goes_on");
  folder.step = read.integer("step");
  return folder;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown machine";
}

// When the file was written; 0 where it is not there.
int64_t written_at(const fs::path& path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 ? int64_t{found.st_mtim.tv_sec} : 0;
}

// Shared file systems may show a new file late, and keep other fractions of its time.
bool appears(const fs::path& path, int64_t written) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    if (std::abs(written_at(path) - written) <= 1) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

// Every rank writes its part of a checkpoint next to those of the others. The recipe that the first
// has just written tells whether they see the same folder.
void require_same_folder(const RunFolder& folder, const runtime::Ranks& ranks) {
  if (ranks.size() == 1) return;
  const fs::path recipe = folder.path / RunFolder::kRecipe;
  const std::string own = fmt::format("{} on {}", fs::absolute(folder.path).string(), host_name());
  const std::string first = ranks.of_first(own);
  const int64_t written = std::stoll(ranks.of_first(std::to_string(written_at(recipe))));
  ranks.on_all([&] {
    if (appears(recipe, written)) return;
    base::throw_user_error(
        "output_dir of rank {} is {}, which is not the folder that rank 0 made, {}; all ranks need "
        "to see the same one: choose it on a file system that all machines share",
        ranks.rank(), own, first);
  });
}

}  // namespace

RunFolder open_run_folder(const formats::Recipe& recipe, const runtime::Ranks& ranks) {
  std::optional<RunFolder> own;
  const std::string text = ranks.decided_by_first([&] {
    own.emplace(open_alone(recipe));
    return to_text(*own);
  });
  return own ? std::move(*own) : from_text(text);
}

void create_run_folder(RunFolder& folder, const formats::Recipe& recipe,
                       const runtime::Ranks& ranks) {
  if (!ranks.is_first()) {
    require_same_folder(folder, ranks);
    base::keep_log(folder.path / RunFolder::rank_log(ranks.rank()));
    return;
  }
  create_folder(folder.path);
  if (!folder.lock) take_lock(folder);
  if (!folder.lock->is_in_place())
    base::throw_user_error(
        "output_dir {} was removed or renamed while the run was being prepared; start it again",
        folder.path.string());
  // Loading takes its time, in which a user may have put something there.
  check_free(folder, recipe);
  check_removals(folder, recipe);
  formats::remove_leftovers(folder.path);
  remove_earlier_run(folder, recipe);
  // It is what a run that finished measured, and this one has not.
  if (folder.goes_on) fs::remove(folder.path / RunFolder::kMeasured);
  mark_run_folder(folder.path);
  folder.lock->watch(kRunMark);
  base::keep_log(folder.path / RunFolder::kLog);
  base::write_file_atomically(folder.path / RunFolder::kRecipe, formats::to_yaml(recipe));
  require_same_folder(folder, ranks);
}

RunFolder open_rescue_folder(const RunFolder& lost, const formats::Recipe& recipe) {
  RunFolder rescue;
  if (const auto moved = lost.lock->present_path()) {
    rescue.path = *moved;
    return rescue;
  }
  rescue.path = create_rescue_folder(lost.path);
  take_lock(rescue);
  mark_run_folder(rescue.path);
  rescue.lock->watch(kRunMark);
  base::keep_log(rescue.path / RunFolder::kLog);
  formats::Recipe rescued = recipe;
  rescued.output_dir = rescue.path.string();
  base::write_file_atomically(rescue.path / RunFolder::kRecipe, formats::to_yaml(rescued));
  return rescue;
}

}  // namespace snug::train
