#include "passes/sharding/sum_shares.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/sharding/rank_operations.h"
#include "program/ir/operands.h"
#include "program/kinds/kind.h"
#include "program/kinds/transfer/collective.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

bool makes_share(const Operation& operation) {
  return !traits_of(operation).sums_over_ranks.empty();
}

}  // namespace

Program sum_shares(Program program, const ShardingOptions& options, const Target& target) {
  if (std::ranges::none_of(program.operations, makes_share)) return program;
  std::vector<Operation> operations = std::exchange(program.operations, {});
  RankOperations collectives(program, target);
  for (const Operation& operation : operations) {
    program.operations.push_back(operation);
    if (!makes_share(operation)) continue;
    Operation sum;
    sum.attributes = AllReduce{.group = RankGroup::all,
                               .ranks = options.ranks_of(RankGroup::all),
                               .nodes = options.nodes_of(RankGroup::all)};
    sum.updates = {find_operand(operation, traits_of(operation).sums_over_ranks)};
    program.operations.push_back(collectives.begin(std::move(sum), operation));
  }
  collectives.count_launches();
  return program;
}

}  // namespace snug::passes
