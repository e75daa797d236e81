#include "runtime/prompt_bounds.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/last_part.h"
#include "program/inputs.h"
#include "program/kind.h"
#include "program/operands.h"
#include "program/tensor_names.h"

namespace snug::runtime {

void set_prompt_bounds(const program::Program& program, std::span<const backends::Buffer> tensors) {
  for (const program::Operation& operation : program.operations) {
    const program::Traits& traits = program::traits_of(operation);
    for (size_t i = 0; i < traits.bounded.size(); ++i) {
      if (traits.bounded[i].empty()) continue;
      const program::TensorId bounds = find_operand(operation, traits.extents[i]);
      const std::string name = base::last_part(program.tensor(bounds).name);
      if (name != program::kPromptQueryBoundsName && name != program::kPromptKeyBoundsName)
        continue;
      const program::TensorId host = host_side(program, bounds);
      if (host == program::kNone) continue;
      auto* values = tensors[static_cast<size_t>(host)].as<int32_t>();
      values[0] = 0;
      const program::TensorId rows = find_operand(operation, traits.bounded[i]);
      values[1] = static_cast<int32_t>(program.tensor(rows).shape[0]);
    }
  }
}

}  // namespace snug::runtime
