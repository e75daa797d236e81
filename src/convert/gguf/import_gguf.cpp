#include "convert/gguf/import_gguf.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "convert/gguf/tokenizer_in.h"
#include "formats/gguf/ggml_type.h"

namespace snug::convert {

GgufImporter::GgufImporter(const std::filesystem::path& file, std::optional<base::DType> dtype,
                           int64_t max_shard_bytes)
    : weights_(file) {
  options_.dtype = dtype;
  options_.max_shard_bytes = max_shard_bytes;
  options_.complete = [this](const std::filesystem::path& folder) {
    write_tokenizer(weights_.file().metadata(), folder);
  };
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

FolderReport GgufImporter::write(const std::filesystem::path& output) const {
  return write_folder(weights_, options_, output);
}

}  // namespace snug::convert
