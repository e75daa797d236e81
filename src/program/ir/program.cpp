#include "program/ir/program.h"

namespace snug::program {

bool Program::are_same_place(TensorId a, TensorId b) const {
  if (owner(a) != owner(b)) return false;
  const Tensor& first = tensor(a);
  const Tensor& second = tensor(b);
  const auto strides_of = [](const Tensor& seen) {
    return seen.is_view() ? seen.view.strides : dense_strides(seen.shape);
  };
  return first.shape == second.shape && first.dtype == second.dtype &&
         first.view.offset == second.view.offset && first.view.rank_step == second.view.rank_step &&
         strides_of(first) == strides_of(second);
}

TensorId Program::find(std::string_view tensor_name) const {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == tensor_name) return static_cast<TensorId>(i);
  return kNone;
}

std::unordered_map<std::string_view, TensorId> Program::index_by_name() const {
  std::unordered_map<std::string_view, TensorId> index;
  index.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    index.emplace(tensors[i].name, static_cast<TensorId>(i));
  return index;
}

Together done_with(const Program& program, size_t operation) {
  const auto& list = program.operations;
  Together together{operation, operation};
  while (together.first > 0 && list[together.first].joined) --together.first;
  while (together.last + 1 < list.size() && list[together.last + 1].joined) ++together.last;
  return together;
}

}  // namespace snug::program
