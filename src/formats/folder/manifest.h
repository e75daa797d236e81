// manifest.json of a checkpoint that several ranks wrote: which ranges of each tensor are in which
// file. A range counts elements of the flattened tensor. In a file, it is a one-dimensional tensor
// with the tensor's name. Checksums of the ranges are in checksums.json, by file.
//   {"format_version": 1, "ranks": 2, "tensors": {
//      "NAME": {"dtype": "F32", "shape": [300, 4], "parts": [
//         {"file": "rank-00000-of-00002.safetensors", "first": 0, "count": 768}, ...]}}}
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

inline constexpr const char* kManifestName = "manifest.json";

// A range of a tensor, and the file that contains it.
struct ManifestPart {
  std::string file;
  int64_t first = 0;
  int64_t count = 0;

  bool operator==(const ManifestPart&) const = default;
};

struct ManifestTensor {
  std::string dtype;  // as in the files: "BF16"
  std::vector<int64_t> shape;
  std::vector<ManifestPart> parts;  // in order; together they make up the tensor

  int64_t elements() const;
  bool operator==(const ManifestTensor&) const = default;
};

struct Manifest {
  static constexpr int64_t kFormatVersion = 1;
  int64_t ranks = 0;
  std::map<std::string, ManifestTensor> tensors;

  bool operator==(const Manifest&) const = default;
};

// "rank-00000-of-00004": the beginning of a rank's file names.
std::string rank_stem(int64_t rank, int64_t ranks);

// A range of a tensor, by its name.
struct TensorRange {
  std::string_view name;
  int64_t first = 0;
  int64_t count = 0;
};

// The text in which a rank reports the content of its file: one line for each range. Names contain
// no line breaks.
std::string to_lines(std::span<const TensorRange> ranges);
// Adds the reported ranges as parts in `file` to the manifest, whose tensors must exist already;
// sort_parts() then puts the parts of each tensor in order.
void add_parts(std::string_view lines, const std::string& file, Manifest& manifest);
void sort_parts(Manifest& manifest);

std::string to_json(const Manifest& manifest);
// Writes the manifest into a file, block by block since it may be long.
void write_manifest(const std::filesystem::path& path, const Manifest& manifest);
// Throws UserError that names `file` and the key, also if the parts of a tensor do not cover each
// of its elements exactly once.
Manifest parse_manifest(std::string_view text, const std::string& file);

// Throws UserError if a folder that was given as a model or an adapter is a checkpoint of several
// ranks, and says what to give instead.
void refuse_rank_checkpoint(const std::filesystem::path& folder);

// For the end of a message: what to give in place of a run's folder that was given as a model or an
// adapter; empty if the folder is not a run's.
std::string advice_on_run_folder(const std::filesystem::path& folder);

}  // namespace snug::formats
