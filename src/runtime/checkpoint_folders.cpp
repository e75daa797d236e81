#include "runtime/checkpoint_folders.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "runtime/checkpoint.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-";

// Gone in one step for whoever lists the folder: a kill while its files are being removed leaves a
// name that the next transaction clears away.
void remove_durably(const fs::path& folder) {
  fs::path doomed = folder;
  doomed += fmt::format(".tmp-{}", ::getpid());
  std::error_code error;
  fs::rename(folder, doomed, error);
  if (!error) fs::remove_all(doomed, error);
  if (error) base::throw_system_error("remove", folder, error.value());
}

}  // namespace

std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const first = name.data() + kPrefix.size();
  const char* const last = name.data() + name.size();
  int64_t step = 0;
  const auto [stop, error] = std::from_chars(first, last, step);
  if (error != std::errc() || stop != last || step < 0) return std::nullopt;
  return step;
}

fs::path checkpoint_path(const fs::path& output_dir, int64_t step) {
  return output_dir / fmt::format("{}{}", kPrefix, step);
}

CheckpointList list_checkpoints(const fs::path& output_dir) {
  CheckpointList list;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(output_dir, error)) {
    const auto step = step_of(entry.path().filename().string());
    if (!step || !entry.is_directory(error)) continue;
    try {
      read_checkpoint_state(entry.path());
      list.complete.push_back({entry.path(), *step});
    } catch (const base::UserError& reason) {
      list.ignored.emplace_back(reason.what());
    }
  }
  std::sort(list.complete.begin(), list.complete.end(),
            [](const CheckpointFolder& a, const CheckpointFolder& b) { return a.step < b.step; });
  std::sort(list.ignored.begin(), list.ignored.end());
  return list;
}

std::optional<fs::path> find_latest_checkpoint(const fs::path& output_dir) {
  const CheckpointList list = list_checkpoints(output_dir);
  if (list.complete.empty()) return std::nullopt;
  return list.complete.back().path;
}

void prune_checkpoints(const fs::path& output_dir, int64_t newest, int64_t keep) {
  if (keep <= 0) return;
  std::vector<CheckpointFolder> kept = list_checkpoints(output_dir).complete;
  std::erase_if(kept, [&](const CheckpointFolder& each) { return each.step > newest; });
  const auto count = static_cast<int64_t>(kept.size());
  for (int64_t i = 0; i < count - keep; ++i) remove_durably(kept[static_cast<size_t>(i)].path);
}

void remove_later_checkpoints(const fs::path& output_dir, int64_t step) {
  for (const CheckpointFolder& each : list_checkpoints(output_dir).complete)
    if (each.step > step) remove_durably(each.path);
}

}  // namespace snug::runtime
