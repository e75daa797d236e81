// The folder that a verb makes of another one.
#pragma once

#include <cstdint>
#include <filesystem>

namespace snug::runtime {

// What making it takes; known before any weight is read.
struct FolderCosts {
  int64_t source_bytes = 0;  // of all tensors
  int64_t result_bytes = 0;  // of the weights' files, at most
  int64_t buffer_bytes = 0;  // memory for data, the whole of it
};

// What it took.
struct FolderReport {
  int64_t result_bytes = 0;
  double seconds = 0;
};

// Throws UserError where it exists and is not empty, and where its disk has less than `bytes` left.
void check_output(const std::filesystem::path& output, int64_t bytes);

}  // namespace snug::runtime
