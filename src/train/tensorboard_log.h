// The event files of report_to=tensorboard, in the run's folder: what metrics.jsonl has, under the
// names that transformers' Trainer gives it in TensorBoard, and the recipe as text. A run that goes
// on begins a file of its own, with which TensorBoard forgets the steps that are done again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace snug::train {

// train/loss of loss, eval/loss of eval_loss.
std::string tensorboard_tag(std::string_view key);

class TensorBoardLog {
 public:
  // `first_step`: of a run that goes on, the first step that it does. Begins a file whose name
  // comes after those of all event files in the folder. Throws UserError where it cannot be
  // written.
  TensorBoardLog(const std::filesystem::path& folder, std::string_view recipe,
                 std::optional<int64_t> first_step);

  // Adds the numbers of a line of metrics.jsonl. Where the file cannot be written, that is said
  // once, and nothing is thrown: metrics.jsonl has all of it.
  void add(std::string_view line);
  // Adds a text, which TensorBoard shows as it stands. Fails as add does.
  void add_text(int64_t step, std::string_view tag, std::string_view text);

  const std::filesystem::path& path() const { return file_.path(); }

  static bool is_event_file(std::string_view name);

 private:
  void append(std::string_view record);
  // Where it fails, that is said, and nothing more is added.
  void try_to(const std::function<void()>& add);

  base::File file_;
  int64_t end_ = 0;
  bool has_failed_ = false;
};

}  // namespace snug::train
