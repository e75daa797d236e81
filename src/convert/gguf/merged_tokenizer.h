// The tokenizer that a model has with an adapter: the small files of the model's folder with those
// of the adapter's over them, as a merge leaves them, so that a merged folder and an export on the
// way have the same prompts and ends. Not thread-safe.
#pragma once

#include <filesystem>

#include "formats/folder/staging_folder.h"

namespace snug::convert {

class MergedTokenizer {
 public:
  // Copies the files next to `output`, for as long as the object lives. Throws UserError where that
  // fails.
  MergedTokenizer(const std::filesystem::path& model, const std::filesystem::path& adapter,
                  const std::filesystem::path& output);

  std::filesystem::path folder() const { return staging_.fresh(); }

 private:
  formats::StagingFolder staging_;
};

}  // namespace snug::convert
