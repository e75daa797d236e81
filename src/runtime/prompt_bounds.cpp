#include "runtime/prompt_bounds.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/last_part.h"
#include "program/inputs.h"
#include "program/kind.h"
#include "program/operands.h"
#include "program/tensor_names.h"

namespace snug::runtime {

void set_prompt_bounds(const program::Program& program, std::span<const backends::Buffer> tensors) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kRowsOfBounds{
      {{"q_bounds", "q"}, {"k_bounds", "k"}}};
  for (const program::Operation& operation : program.operations) {
    if (!program::traits_of(operation).is_attention) continue;
    for (const auto& [bounds_name, rows_name] : kRowsOfBounds) {
      const program::TensorId bounds = find_operand(operation, bounds_name);
      const std::string name = base::last_part(program.tensor(bounds).name);
      if (name != program::kPromptQueryBoundsName && name != program::kPromptKeyBoundsName)
        continue;
      const program::TensorId host = host_side(program, bounds);
      if (host == program::kNone) continue;
      auto* values = tensors[static_cast<size_t>(host)].as<int32_t>();
      values[0] = 0;
      values[1] = static_cast<int32_t>(program.tensor(find_operand(operation, rows_name)).shape[0]);
    }
  }
}

}  // namespace snug::runtime
