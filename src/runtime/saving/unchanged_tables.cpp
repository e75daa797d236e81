#include "runtime/saving/unchanged_tables.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <variant>

#include "base/error.h"
#include "formats/adapter/adapter_config.h"
#include "formats/adapter/peft_adapter.h"
#include "models/families/families.h"
#include "models/stored/open_weights.h"
#include "models/weights.h"
#include "runtime/conversion/convert.h"

namespace snug::runtime {
namespace {

constexpr int64_t kPieceElements = int64_t{1} << 18;

// Whether a and b differ by no more than rounding to bf16: half a step on either side.
bool is_rounded(float a, float b) {
  return std::abs(a - b) <= 0x1p-7F * std::max(std::abs(a), std::abs(b)) + 1e-7F;
}

// Reads a range of a tensor's elements as f32.
template <typename File, typename Tensor>
void read_floats(const File& file, const Tensor& tensor, const formats::TensorInfo& info,
                 int64_t first, std::span<float> to) {
  const int64_t width = base::size_of(*info.dtype);
  std::vector<char> bytes(to.size() * static_cast<size_t>(width));
  file.read_range(tensor, first * width, std::ssize(bytes), bytes.data());
  convert(*info.dtype, bytes.data(), base::DType::f32, to.data(), std::ssize(to));
}

bool have_same_values(const formats::SafetensorsFile& file, const formats::TensorInfo& table,
                      const formats::TensorIndex& index, const formats::IndexedTensor& own) {
  if (table.shape != own.info->shape || !table.dtype || !own.info->dtype) return false;
  std::vector<float> a(kPieceElements);
  std::vector<float> b(kPieceElements);
  for (int64_t first = 0; first < table.elements(); first += kPieceElements) {
    const auto count = static_cast<size_t>(std::min(kPieceElements, table.elements() - first));
    read_floats(file, table, table, first, std::span(a).first(count));
    read_floats(index, own, *own.info, first, std::span(b).first(count));
    for (size_t i = 0; i < count; ++i)
      if (!is_rounded(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> unchanged_tables(const std::filesystem::path& adapter,
                                          const models::ModelSource& model) {
  std::vector<std::string> tables;
  const formats::AdapterConfig config = formats::read_adapter_config(adapter);
  if (model.folder.empty() || !std::holds_alternative<formats::LoraConfig>(config)) return tables;
  const formats::PeftAdapter lora(adapter);
  const models::Stack stack = models::stack_of(model.config);
  // A model with random weights may have no files.
  std::optional<formats::TensorIndex> index;
  for (const std::string& name : lora.saved()) {
    if (formats::is_of_module(name, lora.config().modules_to_save)) continue;
    if (!index) index.emplace(models::open_weights(model.folder, stack));
    const bool is_tied = stack.tied_head && name == models::head_weight(stack);
    const formats::IndexedTensor* own =
        index->find(is_tied ? models::embedding_weight(stack) : name);
    if (own == nullptr || !have_same_values(lora.file(), lora.saved_tensor(name), *index, *own))
      base::throw_user_error(
          "{}: the adapter holds '{}', which adapter_config.json does not name in modules_to_save "
          "and which is another than the model's: PEFT saved it since it was trained or resized "
          "(save_embedding_layers). Merge the adapter into its model with snug merge and train "
          "that; "
          "generate, evaluate and score apply the adapter as it is",
          lora.file().path().string(), name);
    tables.push_back(name);
  }
  return tables;
}

}  // namespace snug::runtime
