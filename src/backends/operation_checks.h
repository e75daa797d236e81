// Checks on operations, for every backend that plans its workspaces.
#pragma once

#include <initializer_list>
#include <string>

#include "base/error.h"
#include "program/ir/operands.h"
#include "program/ir/program.h"
#include "program/kinds/kind.h"
#include "program/work/target.h"

namespace snug::backends {

// Whether the operation has a tensor of this type other than its workspace.
inline bool has_any_of(const program::OperationView& view, base::DType dtype) {
  bool found = false;
  program::for_each_tensor(view.operation, [&](program::TensorId id) {
    found = found || (id != view.operation.workspace && view.program.tensor(id).dtype == dtype);
  });
  return found;
}

// Whether the operation's tensors, except its workspace, are floats to compute in (f32, and one of
// bf16 and f16), indices (i32) or codes of stored weights (u8).
inline bool has_known_types(const program::OperationView& view) {
  for (const base::DType type : {base::DType::f64, base::DType::i64})
    if (has_any_of(view, type)) return false;
  return !(has_any_of(view, base::DType::bf16) && has_any_of(view, base::DType::f16));
}

inline bool is_float_of_32_or_16_bits(base::DType type) {
  return type == base::DType::f32 || type == base::DType::bf16 || type == base::DType::f16;
}

// Whether all tensors except the workspace have this type.
inline bool is_all_of(const program::OperationView& view, base::DType dtype) {
  bool same = true;
  program::for_each_tensor(view.operation, [&](program::TensorId id) {
    if (id != view.operation.workspace) same = same && view.program.tensor(id).dtype == dtype;
  });
  return same;
}

// Whether these operands are f32; operands that the operation does not have are ignored.
template <typename Struct>
bool are_f32(const program::OperationView& view,
             std::initializer_list<program::Operand<Struct>> operands) {
  for (const program::Operand<Struct>& operand : operands) {
    const program::TensorId id = program::id_of(view.operation, operand);
    if (id != program::kNone && view.program.tensor(id).dtype != base::DType::f32) return false;
  }
  return true;
}
// Whether all of the operation's tensors are f32 or indices, except the workspace.
inline bool is_of_f32_and_indices(const program::OperationView& view) {
  bool known = true;
  program::for_each_tensor(view.operation, [&](program::TensorId id) {
    const base::DType type = view.program.tensor(id).dtype;
    known = known && (id == view.operation.workspace || type == base::DType::f32 ||
                      type == base::DType::i32);
  });
  return known;
}

// Whether these operands have float types that kernels compute in.
template <typename Struct>
bool are_floats(const program::OperationView& view,
                std::initializer_list<program::Operand<Struct>> operands) {
  for (const program::Operand<Struct>& operand : operands) {
    if (!is_float_of_32_or_16_bits(view[operand].dtype)) return false;
  }
  return true;
}
// Whether all operands that the operation reads have float types that kernels compute in.
inline bool reads_floats(const program::OperationView& view) {
  for (const program::TensorId id : view.operation.reads) {
    if (!is_float_of_32_or_16_bits(view.program.tensor(id).dtype)) return false;
  }
  return true;
}

// Fails a CHECK where the backend does not run the operation (Target::runs), which means that it
// was lowered for another backend, or where the operation violates its kind's shape rule.
inline void check_runs(const program::OperationView& view, const program::Target& backend) {
  SNUG_CHECK(backend.runs(view), "{} of such tensors or attributes, which {} does not run",
             program::name_of(view.operation.kind()), backend.name());
  const std::string error = program::shape_error(view);
  SNUG_CHECK(error.empty(), "{}: {}", program::name_of(view.operation.kind()), error);
}

// Fails a CHECK where the layout of a tensor is not what kernels expect: contiguous elements; for
// floats only within a row, with a constant distance between rows, unless an optimizer updates
// them.
inline void check_strides(const program::OperationView& view) {
  const bool is_flat = program::traits_of(view.operation).is_of_optimizer();
  program::for_each_tensor(view.operation, [&](program::TensorId id) {
    const program::Tensor& tensor = view.program.tensor(id);
    if (id == view.operation.workspace || !tensor.is_view()) return;
    const bool has_rows = base::is_float(tensor.dtype) && !is_flat;
    int64_t expected = 1;
    for (int axis = tensor.shape.rank() - 1; axis >= 0; --axis) {
      const int64_t stride = tensor.view.strides[static_cast<size_t>(axis)];
      const bool is_between_rows = has_rows && axis == tensor.shape.rank() - 2;
      SNUG_CHECK(is_between_rows || tensor.shape[axis] == 1 || stride == expected,
                 "{} reads or writes {}, whose elements lie {} apart where its kernels step by {}",
                 program::name_of(view.operation.kind()), tensor.name, stride, expected);
      expected = (is_between_rows ? stride : expected) * tensor.shape[axis];
    }
  });
}

// Fails a CHECK, naming the libraries, when the operation needs more than its planned workspace.
inline void check_workspace(const program::OperationView& view, int64_t asked,
                            const std::string& libraries) {
  const program::TensorId scratch = view.operation.workspace;
  const int64_t planned = scratch == program::kNone ? 0 : view.program.tensor(scratch).bytes();
  SNUG_CHECK(asked <= planned, "{} now asks for {} bytes of workspace, planned were {}; {}",
             program::name_of(view.operation.kind()), asked, planned, libraries);
}

}  // namespace snug::backends
