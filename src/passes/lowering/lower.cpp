#include "passes/lowering/lower.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "program/ir/builder.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/kind.h"
#include "program/text/text_attributes.h"
#include "program/work/target.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

// Whether the target runs the operation in f32 if its 16-bit operands are converted.
bool runs_in_f32(const OperationView& view, const Target& target) {
  Program wider = view.program;
  for_each_tensor(view.operation, [&](TensorId id) {
    Tensor& tensor = wider.tensors[static_cast<size_t>(id)];
    if (tensor.dtype == DType::bf16 || tensor.dtype == DType::f16) tensor.dtype = DType::f32;
  });
  return target.runs({wider, view.operation});
}

[[noreturn]] void refuse(const OperationView& view, const Target& target) {
  std::vector<std::string_view> types;
  for (const TensorId read : view.operation.reads)
    types.push_back(base::name_of(view.program.tensor(read).dtype));
  base::throw_user_error("the {} backend has no kernel for {} of {} ({}){}", target.name(),
                         name_of(view.operation.kind()), fmt::join(types, ", "),
                         attributes_text(view.operation.attributes),
                         runs_in_f32(view, target) ? "; with compute_dtype=fp32 it has" : "");
}

bool is_expanded(const OperationView& view, const Target& target) {
  return traits_of(view.operation).performer == Performer::expansion ||
         (has_expansion(view.operation.kind()) && !target.runs(view));
}

}  // namespace

Program expand_unsupported(Program program, const Target& target) {
  const bool runs_all = std::ranges::none_of(program.operations, [&](const Operation& operation) {
    return is_expanded({program, operation}, target);
  });
  if (runs_all) return program;
  Program shell = program;
  shell.operations.clear();
  Builder builder(std::move(shell));
  for (const Operation& operation : program.operations) {
    const OperationView view{program, operation};
    if (is_expanded(view, target))
      expand(view, builder);
    else
      builder.emit(operation);
  }
  return builder.take();
}

Program decide(Program program, const Target& target) {
  Program result = std::move(program);
  for (size_t i = 0; i < result.operations.size(); ++i) {
    Operation& operation = result.operations[i];
    const OperationView view{result, operation};
    if (!target.runs(view)) refuse(view, target);
    operation.attributes = target.decide(view);
    operation.launches = target.launches(view);
    const Workspace scratch = target.workspace(view);
    if (scratch.bytes == 0) continue;
    Tensor tensor;
    tensor.name = workspace_name(i);
    tensor.shape = {scratch.bytes};
    tensor.dtype = DType::u8;
    tensor.role = Role::workspace;
    tensor.layer = operation.layer;
    result.tensors.push_back(std::move(tensor));
    operation.workspace = static_cast<TensorId>(result.tensors.size() - 1);
  }
  for (size_t first = 0; first < result.operations.size();) {
    const size_t end = first + target.launched_together(result, first);
    while (++first < end) result.operations[first].joined = true;
  }
  return result;
}

Program join_products(Program program, const Target& target) {
  return fuse_adds(fuse_low_rank(fuse_adds(std::move(program), target), target), target);
}

Program lower(Program program, const Target& target) {
  Program lowered = expand_unsupported(std::move(program), target);
  lowered = join_products(std::move(lowered), target);
  lowered = fuse_accumulates(std::move(lowered));
  lowered = share_in_place(std::move(lowered));
  lowered = remove_unused(std::move(lowered));
  return decide(std::move(lowered), target);
}

}  // namespace snug::passes
