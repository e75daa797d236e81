#include "passes/sharding/kept_gathers.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "passes/lowering/lower.h"
#include "program/ir/operands.h"
#include "program/ir/program_name.h"
#include "program/kinds/kind.h"

namespace snug::passes {

using namespace program;  // NOLINT: passes speak the program's words throughout

namespace {

// Whether ranks exchange parts of tensors that outlast the program: without a backward pass these
// are weights, which become whole.
bool gathers_weights(const Program& program, const Operation& operation) {
  const Traits traits = traits_of(operation);
  return traits.category == Category::collective && traits.copying == Copying::begins &&
         !operation.reads.empty() && std::ranges::all_of(operation.reads, [&](TensorId shard) {
           return program.tensor(shard).lifetime == Lifetime::run;
         });
}

// The gathered weights of a program. Of a weight that is gathered several times the first whole
// stays, under a name that all programs share, and takes the place of the others.
class Gathered {
 public:
  explicit Gathered(Program& program) {
    for (Operation& operation : program.operations) {
      if (!gathers_weights(program, operation)) continue;
      for (const auto& [shard, whole] : copies_of(operation)) {
        const auto [kept, is_first] = kept_.try_emplace(shard, whole);
        if (is_first)
          keep(program, shard, whole);
        else
          replaced_[whole] = kept->second;
        wholes_.insert(whole);
      }
    }
    for (Tensor& tensor : program.tensors)
      if (wholes_.contains(tensor.view.base)) {
        tensor.view.base = place_of(tensor.view.base);
        tensor.lifetime = Lifetime::step;
      }
  }

  // The tensor that has what this one had.
  TensorId place_of(TensorId id) const {
    const auto found = replaced_.find(id);
    return found == replaced_.end() ? id : found->second;
  }
  bool is_kept(TensorId id) const { return wholes_.contains(id) && !is_replaced(id); }
  bool is_replaced(TensorId id) const { return replaced_.contains(id); }

  // Whether the operation gathers weights, or awaits them.
  bool is_theirs(const Program& program, const Operation& operation) const {
    if (gathers_weights(program, operation)) return true;
    return ends_copy(operation) && !operation.updates.empty() &&
           std::ranges::all_of(operation.updates,
                               [&](TensorId id) { return wholes_.contains(id); });
  }

 private:
  static void keep(Program& program, TensorId shard, TensorId whole) {
    program.tensor(whole).name = program.tensor(shard).name + ".gathered";
    program.tensor(whole).lifetime = Lifetime::step;
  }

  std::map<TensorId, TensorId> kept_;      // the first whole of each shard
  std::map<TensorId, TensorId> replaced_;  // the others
  std::set<TensorId> wholes_;
};

// Leaves out of two lists of the same length what the second has at other places.
void leave_out(const Gathered& gathered, std::vector<TensorId>& shards,
               std::vector<TensorId>& wholes) {
  size_t left = 0;
  for (size_t i = 0; i < wholes.size(); ++i) {
    if (gathered.is_replaced(wholes[i])) continue;
    shards[left] = shards[i];
    wholes[left++] = wholes[i];
  }
  shards.resize(left);
  wholes.resize(left);
}

}  // namespace

Program kept_gathers(Program program) {
  const Gathered gathered(program);
  std::vector<Operation> operations;
  for (Operation& operation : program.operations) {
    if (!gathered.is_theirs(program, operation)) continue;
    const bool awaits = ends_copy(operation);
    leave_out(gathered, operation.reads, awaits ? operation.updates : operation.writes);
    if (!operation.reads.empty()) operations.push_back(std::move(operation));
  }
  program.operations = std::move(operations);
  // What the forward pass has of the stage is none of this program's.
  for (size_t id = 0; id < program.tensors.size(); ++id)
    if (!gathered.is_kept(program.owner(static_cast<TensorId>(id))) &&
        program.tensors[id].lifetime == Lifetime::step)
      program.tensors[id].lifetime = Lifetime::program;
  program.name = name_of(ProgramName::gather);
  return remove_unused(std::move(program));
}

Program without_gathers(Program program) {
  const Gathered gathered(program);
  std::erase_if(program.operations,
                [&](const Operation& operation) { return gathered.is_theirs(program, operation); });
  for (Operation& operation : program.operations)
    for (std::vector<TensorId>* ids : {&operation.reads, &operation.writes, &operation.updates})
      for (TensorId& id : *ids) id = gathered.place_of(id);
  return remove_unused(std::move(program));
}

}  // namespace snug::passes
