#include "runtime/saving/checkpoint_folders.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "formats/folder/directory_transaction.h"
#include "formats/folder/file_list.h"
#include "runtime/saving/checkpoint.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-";

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
  if (!fs::is_directory(output_dir, error)) return list;
  for (const auto& entry : base::list_folder(output_dir)) {
    const auto step = step_of(entry.path().filename().string());
    if (!step || !entry.is_directory(error)) continue;
    try {
      const TrainerState state = read_checkpoint_state(entry.path());
      list.complete.push_back({entry.path(), *step, state.only_model});
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

void prune_checkpoints(const fs::path& output_dir, int64_t newest, int64_t keep,
                       std::span<const int64_t> spared) {
  if (keep <= 0) return;
  std::vector<CheckpointFolder> kept = list_checkpoints(output_dir).complete;
  std::erase_if(kept, [&](const CheckpointFolder& each) {
    return each.step > newest || formats::foreign_entry(each.path);
  });
  auto surplus = static_cast<int64_t>(kept.size()) - keep;
  for (size_t i = 0; i + 1 < kept.size() && surplus > 0; ++i) {
    if (std::ranges::find(spared, kept[i].step) != spared.end()) continue;
    formats::remove_directory(kept[i].path);
    --surplus;
  }
}

}  // namespace snug::runtime
