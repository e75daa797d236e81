// An output folder that a command derives from another folder.
#pragma once

#include <cstdint>
#include <filesystem>

namespace snug::convert {

// Room for a tensor's entry in the header of a file, without its name.
inline constexpr int64_t kHeaderBytes = 128;

// What producing it needs; known before any weight is read.
struct FolderCosts {
  int64_t source_bytes = 0;  // size of all source tensors
  int64_t result_bytes = 0;  // size of the weight files, at most
  int64_t buffer_bytes = 0;  // all memory that is used for data
};

// What producing it took.
struct FolderReport {
  int64_t result_bytes = 0;
  double seconds = 0;
};

// Throws UserError where `output` exists and is not empty, and where its disk has less than `bytes`
// free.
void check_output(const std::filesystem::path& output, int64_t bytes);

}  // namespace snug::convert
