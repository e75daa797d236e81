#include "models/stored/file_widths.h"

#include <algorithm>

#include "formats/folder/tensor_index.h"
#include "models/families/families.h"
#include "models/stored/expert_names.h"
#include "models/stored/open_weights.h"
#include "models/weights.h"

namespace snug::models {
namespace {

// Returns 0 where the files hold no values under the weight's name.
int64_t widest_in(const formats::TensorIndex& index, const Weight& weight) {
  int64_t widest = 0;
  for (const FilePiece& piece : file_pieces(weight.name, weight.shape))
    if (const formats::IndexedTensor* tensor = index.find(piece.name);
        tensor != nullptr && tensor->info->dtype && base::is_float(*tensor->info->dtype))
      widest = std::max(widest, base::size_of(*tensor->info->dtype));
  return widest;
}

}  // namespace

std::map<std::string, int64_t, std::less<>> other_widths(const std::filesystem::path& folder,
                                                         const ModelConfig& config) {
  std::map<std::string, int64_t, std::less<>> widths;
  if (!formats::TensorIndex::has_files(folder)) return widths;
  const Stack stack = stack_of(config);
  const formats::TensorIndex index = open_weights(folder, stack);
  for (const Weight& weight : weights_of(stack)) {
    const int64_t width = widest_in(index, weight);
    if (width > 0 && width != config.file_width) widths.emplace(weight.name, width);
  }
  return widths;
}

}  // namespace snug::models
