// The files of a model (formats/folder/model_writer.h), written by several processes together into
// a folder that is not yet complete. The bytes are the same as those that a single process would
// write. One process creates the files in their full size; then each writes its ranges of the
// tensors; then the process that created the files finishes them. The caller synchronises the
// processes between these steps. Each process has its own writer, made from the same list. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "formats/folder/model_writer.h"

namespace snug::formats {

class SharedModelWriter {
 public:
  SharedModelWriter(const std::filesystem::path& folder, const std::vector<TensorSpec>& tensors,
                    int64_t max_shard_bytes, const std::string& stem);

  // Creates the files with their headers, in full size. Called by one process. Throws UserError
  // when the disk is too small.
  void create();
  // Opens the created files; called by the other processes after create(). Throws UserError if the
  // files are missing.
  void open();
  // Writes bytes of the tensor, starting at its byte `offset`. Returns the number of bytes written.
  int64_t write(std::string_view name, int64_t offset, const void* source, int64_t bytes);
  // Returns when everything that this process wrote is on disk.
  void sync();
  // Writes the index. Called by the process that created the files, after all have synced.
  void finish();

 private:
  struct Place {
    size_t file = 0;
    int64_t begin = 0;  // of the tensor, in bytes from the start of the file
    int64_t bytes = 0;
  };
  std::filesystem::path folder_;
  std::string stem_;
  std::vector<ModelFile> plan_;
  std::vector<std::string> headers_;  // of each file
  std::vector<int64_t> file_bytes_;   // of each file
  std::vector<base::File> files_;     // of each file, once they are open
  std::unordered_map<std::string, Place> places_;
};

}  // namespace snug::formats
