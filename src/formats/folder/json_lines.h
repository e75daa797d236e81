// metrics.jsonl: one JSON object per line, appended as a whole. append makes one system call and no
// heap allocation, so that it may be called inside a training step. Not thread-safe.
#pragma once

#include "base/file.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace snug::formats {

class JsonLines {
 public:
  // Starts an empty file.
  static JsonLines create(const std::filesystem::path& path);
  // Opens an existing file (or creates one) whose lines are in the order of their "step". Keeps
  // lines up to the last one whose step is at most last_step, and drops the rest, an incomplete
  // last line included. A broken line at the start of the file, or directly after the kept lines,
  // is a UserError. The time is proportional to the dropped part, and the memory is constant,
  // whatever the size of the file.
  static JsonLines resume(const std::filesystem::path& path, int64_t last_step);

  // `object` is one JSON object without a line end.
  void append(std::string_view object);
  void sync() { file_.sync(); }
  const std::filesystem::path& path() const { return file_.path(); }

  struct Steps {
    int64_t first = 0;
    int64_t last = 0;
  };
  // The steps of the first and the last line that resume kept; nothing if it kept none.
  const std::optional<Steps>& kept() const { return kept_; }

 private:
  JsonLines(base::File file, int64_t end) : file_(std::move(file)), end_(end) {}

  base::File file_;
  int64_t end_ = 0;
  std::optional<Steps> kept_;
};

}  // namespace snug::formats
