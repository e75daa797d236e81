#include "passes/sharding/shard_visits.h"

#include <algorithm>
#include <map>
#include <utility>

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

std::vector<int32_t> sections_of(const Program& program) {
  std::vector<int32_t> sections;
  std::pair before{-1, false};
  int32_t section = -1;
  for (const Operation& operation : program.operations) {
    const std::pair place{operation.layer, operation.phase == Phase::forward};
    if (section < 0 || place != before || operation.layer < 0) ++section;
    before = place;
    sections.push_back(section);
  }
  return sections;
}

bool is_weight(Role role) {
  return role == Role::weight || role == Role::quant_state || role == Role::adapter;
}

}  // namespace

bool works_on_parts(const Program& program, const Operation& operation,
                    const ShardedTensors& sharded) {
  bool some = false;
  bool all = true;
  for_each_tensor(operation, [&](TensorId id) {
    const TensorId home = program.owner(id);
    if (id == operation.workspace || program.tensor(home).shape.elements() == 1) return;
    const bool is_sharded = sharded.find(home).has_value();
    some = some || is_sharded;
    all = all && is_sharded;
  });
  return some && all;
}

bool writes_any(const Program& program, std::span<const Tensor> named) {
  for (const Operation& operation : program.operations)
    for (const auto* ids : {&operation.writes, &operation.updates})
      for (const TensorId id : *ids)
        for (const Tensor& tensor : named)
          if (program.tensor(id).name == tensor.name) return true;
  return false;
}

ShardVisits find_visits(const Program& program, const ShardedTensors& sharded,
                        WeightSharding weights) {
  ShardVisits visits;
  visits.section_of = sections_of(program);
  std::map<TensorId, size_t> weight_of;    // by home: its latest visit
  std::map<TensorId, size_t> gradient_of;  // by home: its latest visit
  const auto visit = [](std::vector<WholeVisit>& list, std::map<TensorId, size_t>& latest,
                        TensorId home, int32_t section, bool is_new) {
    if (is_new || !latest.contains(home)) {
      latest[home] = list.size();
      list.push_back({home, section, section});
    }
    list[latest[home]].last = section;
  };
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& operation = program.operations[i];
    if (operation.phase == Phase::update || works_on_parts(program, operation, sharded)) continue;
    const int32_t section = visits.section_of[i];
    for_each_tensor(operation, [&](TensorId id) {
      const TensorId home = program.owner(id);
      if (sharded.is_gradient(home))
        return visit(visits.gradients, gradient_of, home, section, false);
      const auto& part = sharded.find(home);
      if (!part || part->is_padded || !is_weight(program.tensor(home).role)) return;
      const bool is_new = weights == WeightSharding::layer_by_layer && weight_of.contains(home) &&
                          visits.weights[weight_of[home]].last != section;
      visit(visits.weights, weight_of, home, section, is_new);
    });
  }
  std::ranges::stable_sort(visits.weights, {}, &WholeVisit::first);
  return visits;
}

}  // namespace snug::passes
