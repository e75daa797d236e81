// manifest.json of a checkpoint that several ranks wrote: which ranges of each tensor are in which
// file. Elements are counted in the flattened tensor; in a file a range is a tensor of the same
// name and one dimension. Checksums of the ranges are in checksums.json, by file.
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

// A range of a tensor, and the file that has it.
struct ManifestPart {
  std::string file;
  int64_t first = 0;
  int64_t count = 0;

  bool operator==(const ManifestPart&) const = default;
};

struct ManifestTensor {
  std::string dtype;  // as in the files: "BF16"
  std::vector<int64_t> shape;
  std::vector<ManifestPart> parts;  // in order; together all of the tensor

  int64_t elements() const;
  bool operator==(const ManifestTensor&) const = default;
};

struct Manifest {
  static constexpr int64_t kFormatVersion = 1;
  int64_t ranks = 0;
  std::map<std::string, ManifestTensor> tensors;

  bool operator==(const Manifest&) const = default;
};

// "rank-00000-of-00004", what the name of a rank's file begins with.
std::string rank_stem(int64_t rank, int64_t ranks);

// A range of a tensor, by its name.
struct TensorRange {
  std::string_view name;
  int64_t first = 0;
  int64_t count = 0;
};

// What a rank tells of what its file has: a line for each range. The names have no line breaks.
std::string to_lines(std::span<const TensorRange> ranges);
// Adds them as parts in `file`, after those that each tensor has: sort_parts() puts them in order.
// The tensors are there already.
void add_parts(std::string_view lines, const std::string& file, Manifest& manifest);
void sort_parts(Manifest& manifest);

std::string to_json(const Manifest& manifest);
// Writes the text into a file, a block at a time, since it may be long.
void write_manifest(const std::filesystem::path& path, const Manifest& manifest);
// Throws UserError naming `file` and the key, also unless the parts of each tensor make all of it,
// each element once.
Manifest parse_manifest(std::string_view text, const std::string& file);

// Throws UserError where a folder that was given as a model or an adapter is a checkpoint of
// several ranks: it says so, and what to give instead.
void refuse_rank_checkpoint(const std::filesystem::path& folder);

// What to give in place of a run's folder that was given as a model or an adapter, as the end of a
// message; empty where it is none.
std::string advice_on_run_folder(const std::filesystem::path& folder);

}  // namespace snug::formats
