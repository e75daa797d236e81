// metrics.jsonl: one JSON object a line, appended whole. Append makes one system call and no heap
// allocation, so that it may run inside a training step. Not thread-safe.
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
  // Opens an existing file (or starts one) of lines in the order of their "step", keeps them up to
  // the last one whose step is not above last_step, and drops the rest and a torn last line. A
  // broken line right after those that are kept, or at the beginning of the file, is a UserError.
  // The time depends on what is dropped and the memory on nothing, however large the file is.
  static JsonLines resume(const std::filesystem::path& path, int64_t last_step);

  // `object` is one JSON object without a line end.
  void append(std::string_view object);
  void sync() { file_.sync(); }
  const std::filesystem::path& path() const { return file_.path(); }

  struct Steps {
    int64_t first = 0;
    int64_t last = 0;
  };
  // The steps of the first and the last line that resume kept; none where it kept none.
  const std::optional<Steps>& kept() const { return kept_; }

 private:
  JsonLines(base::File file, int64_t end) : file_(std::move(file)), end_(end) {}

  base::File file_;
  int64_t end_ = 0;
  std::optional<Steps> kept_;
};

}  // namespace snug::formats
