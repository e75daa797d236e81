#include "convert/gguf/import_gguf.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/words.h"
#include "convert/gguf/tokenizer_in.h"
#include "formats/folder/staging_folder.h"
#include "formats/gguf/ggml_type.h"

namespace snug::convert {

namespace fs = std::filesystem;

GgufImporter::GgufImporter(const fs::path& file, std::optional<base::DType> dtype,
                           int64_t max_shard_bytes)
    : weights_(file) {
  options_.dtype = dtype;
  options_.max_shard_bytes = max_shard_bytes;
  static_cast<FolderCosts&>(plan_) = folder_costs(weights_, options_);
  plan_.tensors = std::ssize(weights_.tensors());
  plan_.quantised_tensors =
      std::ranges::count_if(weights_.file().tensors(), [](const formats::GgufTensorInfo& tensor) {
        return formats::block_size(tensor.type).elements > 1;
      });
  plan_.main_type = base::word_of(weights_.main_type());
  plan_.dtype = dtype.value_or(weights_.tensors().front().dtype);
}

std::string GgufImporter::note() const {
  if (plan_.quantised_tensors == 0) return "";
  return fmt::format(
      "{}: {} of {} tensors are quantised (most values in {}), so the folder has the values that "
      "they stand for: those of the model before it was quantised are not in the file",
      weights_.file().path().string(), plan_.quantised_tensors, weights_.file().tensors().size(),
      plan_.main_type);
}

// The tokenizer comes first: one that is refused is refused before a weight is read.
FolderReport GgufImporter::write(const fs::path& output) const {
  check_output(output, plan_.result_bytes);
  fs::create_directories(fs::absolute(output).lexically_normal().parent_path());
  const formats::StagingFolder staging(output.string() + ".tokenizer");
  fs::create_directories(staging.fresh());
  try {
    write_tokenizer(weights_.file().metadata(), staging.fresh());
  } catch (const base::UserError& error) {
    base::throw_user_error("{}: {}", weights_.file().path().string(), error.what());
  }
  WriteOptions options = options_;
  options.companions = {staging.fresh()};
  return write_folder(weights_, options, output);
}

}  // namespace snug::convert
