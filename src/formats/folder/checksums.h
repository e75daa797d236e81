// Checksums of a folder's files as they were written: one for every piece of every tensor, and for
// the remaining bytes of every file.
//   {"piece_bytes": 1048576, "files": {
//      "config.json": {"bytes": 612, "pieces": "0123456789abcdef..."},
//      "model.safetensors": {"bytes": 4096, "pieces": "...", "tensors": {"NAME": "..."}}}}
// `bytes` is the number of bytes that `pieces` cover: the header of a safetensors file, or all of
// any other file. Pieces have base::kChecksumPieceBytes, so that reading a part of a tensor can
// verify that part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/damaged_file.h"
#include "formats/folder/tensor_index.h"

namespace snug::formats {

// The checksums of each tensor's pieces, by name.
using TensorChecksums = std::map<std::string, std::vector<uint64_t>>;

struct FileChecksums {
  int64_t bytes = 0;
  std::vector<uint64_t> pieces;
  TensorChecksums tensors;

  bool operator==(const FileChecksums&) const = default;
};

struct FolderChecksums {
  std::map<std::string, FileChecksums> files;  // by name

  bool operator==(const FolderChecksums&) const = default;
};

// The checksums of one file. `tensors`: the checksums with which its tensors were written; all
// other bytes are read through `buffer`, which needs at least base::kChecksumPieceBytes.
FileChecksums checksums_of_file(const std::filesystem::path& path, const TensorChecksums& tensors,
                                std::span<std::byte> buffer);
// The checksums of all bytes of one file, whatever it holds. The buffer is as above.
FileChecksums checksums_of_bytes(const std::filesystem::path& path, std::span<std::byte> buffer);
// The checksums of every file of the folder. `tensors`: the checksums with which tensors were
// written; all other bytes are read through `buffer`, which needs at least
// base::kChecksumPieceBytes.
FolderChecksums checksums_of(const std::filesystem::path& folder, const TensorChecksums& tensors,
                             std::span<std::byte> buffer);

std::string to_json(const FileChecksums& checksums);
std::string to_json(const FolderChecksums& checksums);
// Assembles the document from the JSON of each file, by name; uses up its argument.
std::string to_json(std::map<std::string, std::string> files);
// Throws UserError that names `file` and the key.
FolderChecksums parse_checksums(std::string_view text, const std::string& file);

// Reads and compares everything except tensors. Throws base::DamagedFile that names the first file
// that differs.
void verify_files(const std::filesystem::path& folder, const FolderChecksums& checksums,
                  std::span<std::byte> buffer);

// The expected checksums of a tensor's pieces. Throws base::DamagedFile if its file does not belong
// to the folder that was written.
std::span<const uint64_t> checksums_of(const FolderChecksums& checksums, const TensorIndex& index,
                                       const IndexedTensor& tensor);

}  // namespace snug::formats
