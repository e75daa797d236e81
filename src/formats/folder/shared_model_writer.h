// The files of a model (formats/folder/model_writer.h) that several processes write together, in a
// folder that nobody takes for whole yet. The bytes are those that one process would write. One of
// them creates the files in their full size, then each writes its ranges of the tensors, then the
// one that created them ends the set. In between all wait for each other. Each has a writer of its
// own, made of the same list. Not thread-safe.
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

  // Makes the files with headers, in their full size. One process calls it. Throws UserError when
  // the disk is too small.
  void create();
  // The other processes call it after that. Throws UserError where the files are not there.
  void open();
  // Writes bytes of the tensor from its byte `offset` on. Returns how many the file took.
  int64_t write(std::string_view name, int64_t offset, const void* source, int64_t bytes);
  // Returns when all that this process wrote is on the disk.
  void sync();
  // The process that created the files calls it once all have synced: it writes the index.
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
  std::vector<int64_t> file_bytes_;   // likewise
  std::vector<base::File> files_;     // likewise, once they are open
  std::unordered_map<std::string, Place> places_;
};

}  // namespace snug::formats
