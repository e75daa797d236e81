#include "program/program.h"

namespace snug::program {

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
