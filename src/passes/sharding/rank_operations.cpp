#include "passes/sharding/rank_operations.h"

#include <fmt/format.h>

#include <utility>

#include "program/ir/operands.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/kind.h"
#include "program/kinds/transfer/transfer.h"
#include "program/work/target.h"

namespace snug::passes {

using namespace program;  // NOLINT: passes speak the program's words throughout

void RankOperations::count_launches() {
  for (Operation& operation : program_.operations)
    if (traits_of(operation).performer != Performer::runtime)
      operation.launches = target_.launches({program_, operation});
}

void RankOperations::give_scratch(Operation& operation) {
  const Workspace scratch = target_.workspace({program_, operation});
  operation.workspace = kNone;
  if (scratch.bytes == 0) return;
  Tensor tensor;
  tensor.name = fmt::format("ranks.{}", workspace_name(program_.tensors.size()));
  tensor.shape = {scratch.bytes};
  tensor.dtype = DType::u8;
  tensor.role = Role::workspace;
  tensor.layer = operation.layer;
  operation.workspace = static_cast<TensorId>(program_.tensors.size());
  program_.tensors.push_back(std::move(tensor));
}

Operation RankOperations::begin(Operation collective, const Operation& place) {
  collective.channel = Channel::interconnect;
  collective.phase = place.phase;
  collective.layer = place.layer;
  collective.attributes = target_.decide({program_, collective});
  give_scratch(collective);
  Operation await;
  const bool in_place = collective.reads.empty();
  await.attributes = Await{.in_place = in_place};
  for (const auto& [from, to] : copies_of(collective)) {
    if (!in_place) await.reads.push_back(from);
    await.updates.push_back(to);
  }
  await.workspace = collective.workspace;
  await.phase = place.phase;
  await.layer = place.layer;
  program_.operations.push_back(std::move(collective));
  return await;
}

}  // namespace snug::passes
