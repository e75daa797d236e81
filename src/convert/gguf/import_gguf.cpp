#include "convert/gguf/import_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "base/words.h"
#include "convert/folder/model_card.h"
#include "convert/gguf/tokenizer_in.h"
#include "formats/folder/staging_folder.h"
#include "formats/gguf/ggml_type.h"
#include "runtime/process/process_memory.h"

namespace snug::convert {

namespace fs = std::filesystem;

namespace {

// The most that making a tokenizer's files takes: documents of JSON, and the tokenizer that is made
// of them as a test. Measured on SmolLM2's (49,152 tokens and as many merges): 300 bytes for a
// text.
int64_t tokenizer_bytes(const formats::Metadata& metadata) {
  constexpr int64_t kBytesOfText = 320;
  constexpr int64_t kCopies = 6;
  int64_t bytes = 0;
  for (const auto& [key, value] : metadata.pairs())
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
      for (const std::string& text : *texts) bytes += kBytesOfText + kCopies * std::ssize(text);
  return bytes;
}

// With what the file says of its licence and its languages.
CardInputs import_card(const GgufWeights& weights, const GgufImportPlan& plan,
                       const fs::path& output) {
  CardInputs card{.kind = CardKind::imported,
                  .title = title_of_folder(output),
                  .model = weights.file().path(),
                  .types = {std::string(base::name_of(plan.dtype))}};
  const formats::Metadata& metadata = weights.file().metadata();
  if (const auto* value = metadata.find("general.license"))
    if (const auto* text = std::get_if<std::string>(value)) card.licence = *text;
  if (const auto* value = metadata.find("general.languages"))
    if (const auto* texts = std::get_if<std::vector<std::string>>(value)) card.languages = *texts;
  return card;
}

}  // namespace

GgufImporter::GgufImporter(const fs::path& file, std::optional<base::DType> dtype,
                           int64_t max_shard_bytes)
    : weights_(file) {
  options_.dtype = dtype;
  options_.max_shard_bytes = max_shard_bytes;
  static_cast<FolderCosts&>(plan_) = folder_costs(weights_, options_);
  // Given back before the buffers of the weights are made.
  plan_.buffer_bytes = std::max(plan_.buffer_bytes, tokenizer_bytes(weights_.file().metadata()));
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
  runtime::release_freed_memory();
  WriteOptions options = options_;
  options.companions = {staging.fresh()};
  options.complete = [&](const fs::path& folder) {
    write_model_card(folder, import_card(weights_, plan_, output));
  };
  return write_folder(weights_, options, output);
}

}  // namespace snug::convert
