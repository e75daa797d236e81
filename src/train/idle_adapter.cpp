#include "train/idle_adapter.h"

#include <algorithm>
#include <string_view>

#include "backends/backend.h"
#include "runtime/saving/checkpoint_files.h"
#include "runtime/saving/save_tensors.h"

namespace snug::train {
namespace {

// As PEFT names them (methods/lora.cpp).
bool is_lora_b(std::string_view name) {
  return name.find(".lora_B.") != std::string_view::npos ||
         name.find(".lora_embedding_B") != std::string_view::npos;
}

// -0 counts as 0: what was stored, not its bits.
bool has_only_zeros(const backends::Buffer& piece) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(piece.data);
  const auto width = static_cast<int64_t>(base::size_of(piece.dtype));
  for (int64_t i = 0; i < piece.bytes(); ++i) {
    const bool is_sign_byte = i % width == width - 1;
    if ((is_sign_byte ? bytes[i] & 0x7F : bytes[i]) != 0) return false;
  }
  return true;
}

}  // namespace

bool is_idle_adapter(runtime::Executor& executor, const runtime::Ranks* ranks) {
  const auto tensors = plan::adapter_tensors(executor.job());
  const bool has_b = std::ranges::any_of(
      tensors, [](const program::Tensor& tensor) { return is_lora_b(tensor.name); });
  if (!has_b) return false;
  executor.backend().synchronise();
  runtime::Saved saved =
      runtime::saved_by(program::ProgramName::save, runtime::FileSet::adapter, executor);
  bool is_idle = true;
  runtime::save_pieces(saved, executor,
                       [&](const runtime::SavedTensor& tensor, const backends::Buffer& piece,
                           int64_t /*first_byte*/) {
                         if (is_idle && is_lora_b(tensor.name)) is_idle = has_only_zeros(piece);
                         return piece.bytes();
                       });
  return ranks == nullptr ? is_idle : ranks->least(is_idle ? 1 : 0) == 1;
}

}  // namespace snug::train
