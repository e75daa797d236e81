// Two peephole rewrites: sums that a matrix product or a norm's derivative can make on the way.
#include <algorithm>
#include <optional>
#include <variant>

#include "passes/lower.h"
#include "passes/uses.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

size_t index(TensorId id) { return static_cast<size_t>(id); }

// Whether the operation's first output can take an addend.
bool takes_addend(const Operation& operation) {
  if (const auto* matmul = std::get_if<Matmul>(&operation.attributes))
    return !matmul->addend && !matmul->accumulate;
  if (const auto* norm = std::get_if<RmsNormGrad>(&operation.attributes)) return !norm->addend;
  return false;
}

void set_addend(Operation& operation, TensorId addend, TensorId output) {
  auto at = operation.reads.end();
  if (auto* matmul = std::get_if<Matmul>(&operation.attributes)) {
    matmul->addend = true;
    at = operation.reads.begin() + 2;
  }
  if (auto* norm = std::get_if<RmsNormGrad>(&operation.attributes)) norm->addend = true;
  operation.reads.insert(at, addend);
  operation.writes[0] = output;
}

// Where the producer of `part` may absorb add(part, other) at position `add`: part has no other
// reader, and `other` already exists when the producer runs.
std::optional<int32_t> absorber(const Program& program, const Uses& uses, TensorId part,
                                TensorId other, const std::vector<bool>& removed) {
  if (program.tensor(part).is_view()) return {};
  if (uses.readers[index(part)].size() != 1 || uses.writers[index(part)].size() != 1) return {};
  const int32_t producer = uses.writers[index(part)][0];
  if (removed[static_cast<size_t>(producer)]) return {};
  const Operation& operation = program.operations[static_cast<size_t>(producer)];
  if (!takes_addend(operation) || operation.writes[0] != part) return {};
  for (const int32_t writer : uses.writers[index(program.owner(other))])
    if (writer >= producer) return {};
  return producer;
}

// Sets the accumulate flag of the kind whose output at `position` in writes is a gradient part;
// false when the kind cannot add in place.
bool set_accumulate(Operation& operation, size_t position, const Accumulate& sum) {
  if (auto* matmul = std::get_if<Matmul>(&operation.attributes)) {
    if (matmul->addend || matmul->augmented) return false;
    matmul->accumulate = true;
    matmul->stochastic = sum.stochastic;
    matmul->seed = sum.seed;
    matmul->site = sum.site;
    return true;
  }
  if (sum.stochastic) return false;
  if (auto* norm = std::get_if<RmsNormGrad>(&operation.attributes))
    return position == 1 && (norm->accumulate = true);
  if (auto* rows = std::get_if<SumRows>(&operation.attributes)) return rows->accumulate = true;
  if (auto* table = std::get_if<EmbeddingGrad>(&operation.attributes))
    return table->accumulate = true;
  if (auto* head = std::get_if<LinearCrossEntropyTrain>(&operation.attributes))
    return position == 3 && (head->accumulate = true);
  return false;
}

}  // namespace

Program fuse_adds(const Program& program) {
  Program result = program;
  std::vector<bool> removed(program.operations.size(), false);
  const Uses uses = find_uses(result);
  for (size_t i = 0; i < result.operations.size(); ++i) {
    const Operation add = result.operations[i];
    if (add.kind() != Kind::add) continue;
    for (const auto& [part, other] :
         {std::pair{add.reads[0], add.reads[1]}, std::pair{add.reads[1], add.reads[0]}}) {
      const auto producer = absorber(result, uses, part, other, removed);
      if (!producer) continue;
      set_addend(result.operations[static_cast<size_t>(*producer)], other, add.writes[0]);
      removed[i] = true;
      break;
    }
  }
  return without(result, removed);
}

Program fuse_accumulates(const Program& program) {
  Program result = program;
  const Uses uses = find_uses(program);
  std::vector<bool> removed(program.operations.size(), false);
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& sum = program.operations[i];
    const auto* attributes = std::get_if<Accumulate>(&sum.attributes);
    if (attributes == nullptr) continue;
    const TensorId part = sum.reads[0];
    if (program.tensor(part).is_view()) continue;
    if (uses.readers[index(part)].size() != 1 || uses.writers[index(part)].size() != 1) continue;
    Operation& producer = result.operations[static_cast<size_t>(uses.writers[index(part)][0])];
    const auto written = std::find(producer.writes.begin(), producer.writes.end(), part);
    if (written == producer.writes.end()) continue;
    const auto position = static_cast<size_t>(written - producer.writes.begin());
    if (!set_accumulate(producer, position, *attributes)) continue;
    producer.writes.erase(written);
    producer.updates.push_back(sum.updates[0]);
    if (attributes->stochastic) producer.reads.push_back(sum.reads[1]);
    removed[i] = true;
  }
  return without(result, removed);
}

}  // namespace snug::passes
