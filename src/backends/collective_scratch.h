// Scratch of what ranks do together, the same on every backend.
#pragma once

#include <cstdint>
#include <variant>

#include "comm/communicator.h"
#include "program/program.h"

namespace snug::backends {

inline int64_t collective_scratch_bytes(const program::OperationView& view) {
  const program::Operation& operation = view.operation;
  const auto elements_of = [&](const std::vector<program::TensorId>& ids) {
    int64_t elements = 0;
    for (const program::TensorId id : ids) elements += view.program.tensor(id).shape.elements();
    return elements;
  };
  if (const auto* reduce = std::get_if<program::ReduceScatter>(&operation.attributes))
    return comm::scratch_bytes(reduce->ranks,
                               elements_of(reduce->in_place ? operation.updates : operation.reads));
  if (const auto* reduce = std::get_if<program::AllReduce>(&operation.attributes))
    return comm::scratch_bytes(reduce->ranks, elements_of(operation.updates));
  return 0;
}

}  // namespace snug::backends
