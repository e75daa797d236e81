// metrics.jsonl: one JSON object a line, appended whole. Append makes one system call and no heap
// allocation, so that it may run inside a training step. Not thread-safe.
#pragma once

#include "base/file.h"

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace snug::formats {

class JsonLines {
 public:
  // Starts an empty file.
  static JsonLines create(const std::filesystem::path& path);
  // Opens an existing file (or starts one), keeps the lines up to the first one whose "step" is
  // above last_step, and drops the rest and a torn last line. A broken line elsewhere is a
  // UserError.
  static JsonLines resume(const std::filesystem::path& path, int64_t last_step);

  // `object` is one JSON object without a line end.
  void append(std::string_view object);
  void sync() { file_.sync(); }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  JsonLines(base::File file, int64_t end) : file_(std::move(file)), end_(end) {}

  base::File file_;
  int64_t end_ = 0;
};

}  // namespace snug::formats
