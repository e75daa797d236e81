#include "passes/lower.h"

#include <fmt/format.h>

#include "base/error.h"
#include "program/builder.h"
#include "program/kind.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

[[noreturn]] void refuse(const OperationView& view, const Target& target) {
  std::string types;
  for (size_t i = 0; i < view.operation.reads.size() && i < 3; ++i)
    types += fmt::format("{}{}", i == 0 ? "" : ", ", base::name_of(view.read(i).dtype));
  base::throw_user_error(
      "the {} backend cannot run {} on ({}) on this machine; with compute_dtype=fp32 it can",
      target.name(), name_of(view.operation.kind()), types);
}

void set_chunk_rows(Operation& operation, const Program& program, const Target& target) {
  const auto rows = [&] {
    const int64_t vocab = program.tensor(operation.reads[1]).shape[0];
    return target.loss_chunk_rows(vocab, program.tensor(operation.reads[0]).shape.rows());
  };
  if (auto* plain = std::get_if<LinearCrossEntropy>(&operation.attributes))
    plain->chunk_rows = rows();
  if (auto* train = std::get_if<LinearCrossEntropyTrain>(&operation.attributes))
    train->chunk_rows = rows();
}

void set_by_library(Operation& operation, bool by_library) {
  if (auto* attention = std::get_if<Attention>(&operation.attributes))
    attention->by_library = by_library;
  if (auto* grad = std::get_if<AttentionGrad>(&operation.attributes)) grad->by_library = by_library;
}

}  // namespace

Program expand_unsupported(const Program& program, const Target& target) {
  Program shell = program;
  shell.operations.clear();
  Builder builder(std::move(shell));
  for (const Operation& operation : program.operations) {
    const OperationView view{program, operation};
    if (is_fused(operation.kind()) && !target.runs(view))
      expand(view, builder);
    else
      builder.emit(operation);
  }
  return builder.take();
}

Program add_workspaces(const Program& program, const Target& target) {
  Program result = program;
  for (size_t i = 0; i < result.operations.size(); ++i) {
    Operation& operation = result.operations[i];
    set_chunk_rows(operation, result, target);
    const OperationView view{result, operation};
    if (!target.runs(view)) refuse(view, target);
    const Workspace scratch = target.workspace(view);
    set_by_library(operation, scratch.by_library);
    if (scratch.bytes == 0) continue;
    Tensor tensor;
    tensor.name = fmt::format("workspace.{}{}", i, scratch.exact ? "" : ".bound");
    tensor.shape = {scratch.bytes};
    tensor.dtype = DType::u8;
    tensor.role = Role::workspace;
    tensor.layer = operation.layer;
    result.tensors.push_back(std::move(tensor));
    operation.workspace = static_cast<TensorId>(result.tensors.size() - 1);
  }
  return result;
}

Program join_products(const Program& program, const Target& target) {
  return fuse_adds(fuse_low_rank(fuse_adds(program), target));
}

Program lower(const Program& program, const Target& target) {
  Program lowered = expand_unsupported(program, target);
  lowered = join_products(lowered, target);
  lowered = fuse_accumulates(lowered);
  lowered = share_in_place(lowered);
  lowered = remove_unused(lowered);
  return add_workspaces(lowered, target);
}

}  // namespace snug::passes
