// Stages: find where tensors are needed whole (shard_visits.h); replace each sharded tensor by the
// rank's part; write the list again with gathers before the sections that need whole tensors, with
// sums after the sections that complete gradients, and with optimizers once their gradients are
// summed.
#include "passes/sharding/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "passes/sharding/rank_operations.h"
#include "passes/sharding/shard_homes.h"
#include "passes/sharding/shard_visits.h"
#include "program/ir/operands.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/kind.h"
#include "program/kinds/transfer/collective.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

// Sums and gathers after sections are collected until they have this many bytes, unless starting
// them frees memory.
constexpr int64_t kBucketBytes = int64_t{25} << 20;

class Sharder {
 public:
  Sharder(const Program& program, const Sharding& sharding, const ShardingOptions& options,
          const ShardRole& role, const Target& target)
      : input_(program),
        sharding_(sharding),
        sharded_(program, sharding),
        options_(options),
        role_(role),
        visits_(find_visits(program, sharded_, options.weights)),
        result_{.name = program.name, .tensors = program.tensors, .operations = {}},
        homes_(program, sharded_, options.shards, result_),
        collectives_(result_, target) {
    result_.operations.reserve(program.operations.size());
  }

  Program run() {
    if (!writes_any(input_, role_.sums)) begin_sums();
    for (size_t i = 0; i < input_.operations.size(); ++i) {
      const int32_t section = visits_.section_of[i];
      if (i == 0 || visits_.section_of[i - 1] != section) open(section, input_.operations[i]);
      push(input_.operations[i]);
      const bool is_end = i + 1 == input_.operations.size() || visits_.section_of[i + 1] != section;
      if (is_end) close(section, input_.operations[i]);
    }
    end();
    collectives_.count_launches();
    return std::move(result_);
  }

 private:
  template <typename Struct>
  Struct of_group(RankGroup group, Struct collective) const {
    collective.group = group;
    collective.ranks = options_.ranks_of(group);
    collective.nodes = options_.nodes_of(group);
    return collective;
  }

  TensorId add(Tensor tensor) {
    result_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(result_.tensors.size() - 1);
  }

  // Begins the gathers of the weights that this section is the first to need.
  void begin_gather(int32_t section, const Operation& place) {
    Operation gather;
    gather.attributes = of_group(RankGroup::shards, AllGather{});
    for (; next_weight_ < visits_.weights.size() && visits_.weights[next_weight_].first <= section;
         ++next_weight_) {
      const WholeVisit& visit = visits_.weights[next_weight_];
      const TensorId whole = homes_.add_whole(visit.home, Role::comm_buffer);
      gather.reads.push_back(visit.home);
      gather.writes.push_back(whole);
      gathered_.emplace_back(next_weight_, whole);
    }
    if (!gather.reads.empty()) gathers_.push_back(collectives_.begin(std::move(gather), place));
  }

  void begin_next_gather(const Operation& place) {
    if (next_weight_ < visits_.weights.size())
      begin_gather(visits_.weights[next_weight_].first, place);
  }

  void open(int32_t section, const Operation& place) {
    begin_gather(section, place);
    const bool needs_some =
        !gathered_.empty() && visits_.weights[gathered_[0].first].first <= section;
    if (needs_some && options_.prefetch == Prefetch::pre) begin_next_gather(place);
    if (!needs_some) return;
    result_.operations.push_back(std::move(gathers_.front()));
    gathers_.pop_front();
    while (!gathered_.empty() && visits_.weights[gathered_[0].first].first <= section) {
      homes_.set_whole(visits_.weights[gathered_[0].first].home, gathered_[0].second);
      gathered_.pop_front();
    }
  }

  // Optimizers are deferred until their gradients are summed over all ranks.
  void push(const Operation& operation) {
    const bool is_late =
        operation.phase == Phase::update && (!late_.empty() || touches_unsummed(operation));
    if (is_late) return late_.push_back(operation);
    emit(operation);
  }

  bool touches_unsummed(const Operation& operation) const {
    bool touches = false;
    for_each_tensor(operation,
                    [&](TensorId id) { touches |= unsummed_.contains(input_.owner(id)); });
    return touches;
  }

  void emit(const Operation& original) {
    Operation operation = original;
    const bool on_parts = works_on_parts(input_, original, sharded_);
    begin_gradients(original, on_parts);
    if (!on_parts) gather_parts(original);
    if (joins_norms(original)) return emit_norm(original);
    for (std::vector<TensorId>* ids : {&operation.reads, &operation.writes, &operation.updates})
      for (TensorId& id : *ids) id = homes_.operand(id, on_parts);
    is_divided_ = operation.joined && (is_divided_ || result_.operations.size() != end_of_last_);
    if (is_divided_) operation.joined = false;
    result_.operations.push_back(std::move(operation));
    end_of_last_ = result_.operations.size();
    if (on_parts) note_changes(original);
  }

  // A sharded gradient is first computed whole.
  void begin_gradients(const Operation& operation, bool on_parts) {
    if (on_parts || operation.phase == Phase::update) return;
    for_each_tensor(operation, [&](TensorId id) {
      const TensorId home = input_.owner(id);
      if (!sharded_.is_gradient(home)) return;
      const bool is_scattered = homes_.is_sharded(home) && !homes_.is_padded(home);
      if (is_scattered && homes_.whole(home) == kNone)
        homes_.set_whole(home, homes_.add_whole(home, Role::gradient));
      if (is_scattered || role_.is_last_micro) unsummed_.insert(home);
    });
  }

  // Notes weights of which every rank holds the whole: after the update of their parts, the whole
  // is gathered again.
  void note_changes(const Operation& operation) {
    for (const auto* ids : {&operation.writes, &operation.updates})
      for (const TensorId id : *ids)
        if (homes_.is_padded(id) && !sharded_.is_gradient(id)) changed_.push_back(id);
  }

  // Gathers tensors of which each rank computed its part within the program, and which the
  // operation reads whole.
  void gather_parts(const Operation& operation) {
    Operation gather;
    gather.attributes = of_group(RankGroup::shards, AllGather{});
    for (const TensorId id : operation.reads) {
      const TensorId home = input_.owner(id);
      const bool is_part = homes_.is_sharded(home) && !homes_.is_padded(home) &&
                           input_.tensor(home).lifetime == Lifetime::program;
      if (!is_part || sharded_.is_gradient(home) || homes_.whole(home) != kNone) continue;
      gather.reads.push_back(home);
      homes_.set_whole(home, homes_.add_whole(home, Role::comm_buffer));
      gather.writes.push_back(homes_.whole(home));
    }
    if (!gather.reads.empty())
      result_.operations.push_back(collectives_.begin(std::move(gather), operation));
  }

  void close(int32_t section, const Operation& place) {
    for (const WholeVisit& visit : visits_.weights)
      if (visit.last == section && visit.first <= section) homes_.set_whole(visit.home, kNone);
    for (const WholeVisit& visit : visits_.gradients)
      if (visit.last == section && unsummed_.contains(visit.home)) take_gradient(visit.home);
    if (options_.prefetch == Prefetch::post) begin_next_gather(place);
    const bool is_full = bytes_of(summed_) + bytes_of(scattered_in_place_) >= kBucketBytes;
    if (!scattered_.empty() || is_full) begin_reductions(place, is_full || !late_.empty());
    if (bytes_of(changed_) >= kBucketBytes) gather_changed(place);
  }

  int64_t bytes_of(const std::vector<TensorId>& ids) const {
    int64_t bytes = 0;
    for (const TensorId id : ids) bytes += result_.tensor(id).bytes();
    return bytes;
  }

  void take_gradient(TensorId home) {
    if (!homes_.is_sharded(home))
      summed_.push_back(home);
    else if (homes_.is_padded(home))
      scattered_in_place_.push_back(home);
    else
      scattered_.push_back(home);
  }

  // `all`: includes reductions that free no memory.
  void begin_reductions(const Operation& place, bool all) {
    await_reductions(place);
    begin_scatter(place);
    if (!all) return;
    if (!scattered_in_place_.empty()) {
      Operation scatter;
      scatter.attributes = of_group(
          RankGroup::shards, ReduceScatter{.in_place = true, .sent_bf16 = options_.sent_bf16});
      scatter.updates = scattered_in_place_;
      begin(std::move(scatter), std::exchange(scattered_in_place_, {}), place, false);
    }
    if (!summed_.empty()) begin_sum(RankGroup::all, std::exchange(summed_, {}), place);
  }

  void begin_scatter(const Operation& place) {
    if (scattered_.empty()) return;
    // The gradients of a step accumulate over its micro-batches, except in micro_first, which
    // writes them.
    const bool adds = input_.name != name_of(ProgramName::micro_first);
    Operation scatter;
    scatter.attributes = of_group(
        RankGroup::shards, ReduceScatter{.accumulate = adds, .sent_bf16 = options_.sent_bf16});
    for (const TensorId home : scattered_) {
      scatter.reads.push_back(homes_.whole(home));
      homes_.set_whole(home, kNone);
    }
    (adds ? scatter.updates : scatter.writes) = scattered_;
    begin(std::move(scatter), std::exchange(scattered_, {}), place, false);
  }

  void begin_sum(RankGroup group, std::vector<TensorId> homes, const Operation& place) {
    Operation sum;
    sum.attributes = of_group(group, AllReduce{.sent_bf16 = options_.sent_bf16});
    sum.updates = homes;
    begin(std::move(sum), std::move(homes), place, true);
  }

  void begin(Operation collective, std::vector<TensorId> homes, const Operation& place,
             bool is_sum) {
    reductions_.push_back(
        {collectives_.begin(std::move(collective), place), std::move(homes), is_sum});
  }

  // Gradients that are summed over the shards of a replica are then summed over the replicas, after
  // the last micro-batch.
  void await_reductions(const Operation& place) {
    while (!reductions_.empty()) {
      std::vector<TensorId> parts;
      for (Reduction& reduction : std::exchange(reductions_, {})) {
        result_.operations.push_back(std::move(reduction.await));
        const bool goes_on = !reduction.is_sum && role_.is_last_micro && options_.replicas > 1;
        for (const TensorId home : reduction.homes) {
          if (goes_on)
            parts.push_back(home);
          else
            unsummed_.erase(home);
        }
      }
      if (!parts.empty()) begin_sum(RankGroup::replicas, std::move(parts), place);
    }
    emit_late();
  }

  void emit_late() {
    while (!late_.empty() && !touches_unsummed(late_.front())) {
      emit(late_.front());
      late_.pop_front();
    }
  }

  void gather_changed(const Operation& place) {
    if (changed_.empty()) return;
    Operation gather;
    gather.attributes = of_group(RankGroup::shards, AllGather{.in_place = true});
    gather.updates = std::exchange(changed_, {});
    last_awaits_.push_back(collectives_.begin(std::move(gather), place));
  }

  // Whether this is the norm of all gradients, and the rank holds only a part of some of them.
  bool joins_norms(const Operation& operation) const {
    const OperandName norm = traits_of(operation).norm_of_parts;
    if (norm.empty()) return false;
    return !sharding_.is_part_norm(input_.tensor(find_operand(operation, norm)).name) &&
           std::ranges::any_of(operation.reads, [&](TensorId id) { return is_part(id); });
  }

  bool is_part(TensorId id) const {
    return homes_.is_sharded(id) || sharding_.is_part_norm(input_.tensor(id).name);
  }

  TensorId add_norm(std::string name, int64_t count, const Tensor& like) {
    Tensor norm = like;
    norm.name = fmt::format("{}.{}", like.name, name);
    norm.shape = {count};
    norm.lifetime = Lifetime::program;
    return add(std::move(norm));
  }

  // norm = norm(norms of all ranks' parts, tensors that every rank holds whole).
  void emit_norm(const Operation& original) {
    const Tensor total = input_.tensor(find_operand(original, traits_of(original).norm_of_parts));
    Operation parts = original;
    Operation all = original;
    parts.reads.clear();
    all.reads.clear();
    for (const TensorId id : original.reads) {
      if (!is_part(id))
        all.reads.push_back(id);
      else
        parts.reads.push_back(homes_.operand(id, true));
    }
    const TensorId of_part = add_norm("part", 1, total);
    const TensorId of_ranks = add_norm("parts", options_.shards, total);
    parts.writes = {of_part};
    all.reads.insert(all.reads.begin(), of_ranks);
    push_with_scratch(std::move(parts));
    Operation gather;
    gather.attributes = of_group(RankGroup::shards, AllGather{});
    gather.reads = {of_part};
    gather.writes = {of_ranks};
    Operation await = collectives_.begin(std::move(gather), original);
    result_.operations.push_back(std::move(await));
    push_with_scratch(std::move(all));
  }

  void push_with_scratch(Operation operation) {
    collectives_.give_scratch(operation);
    result_.operations.push_back(std::move(operation));
    end_of_last_ = result_.operations.size();
  }

  void begin_sums() {
    if (role_.sums.empty() || options_.ranks() == 1) return;
    Operation place;
    if (!input_.operations.empty()) place = input_.operations.front();
    place.layer = -1;
    Operation sum;
    sum.attributes = of_group(RankGroup::all, AllReduce{});
    for (const Tensor& tensor : role_.sums) {
      TensorId id = result_.find(tensor.name);
      if (id == kNone) id = add(tensor);
      sum.updates.push_back(id);
    }
    last_awaits_.push_back(collectives_.begin(std::move(sum), place));
  }

  void end() {
    Operation place;
    if (!input_.operations.empty()) place = input_.operations.back();
    place.layer = -1;
    begin_reductions(place, true);
    await_reductions(place);
    SNUG_CHECK(late_.empty() && gathers_.empty() && unsummed_.empty(),
               "what ranks do together is not done at the end of {}", input_.name);
    gather_changed(place);
    if (writes_any(input_, role_.sums)) begin_sums();
    for (Operation& await : last_awaits_) result_.operations.push_back(std::move(await));
  }

  // A collective that sums gradients over ranks.
  struct Reduction {
    Operation await;
    std::vector<TensorId> homes;
    bool is_sum = false;
  };

  const Program& input_;
  const Sharding& sharding_;
  const ShardedTensors sharded_;
  const ShardingOptions& options_;
  const ShardRole& role_;
  const ShardVisits visits_;
  Program result_;
  ShardHomes homes_;
  RankOperations collectives_;
  size_t next_weight_ = 0;  // the first visit whose gather has not begun
  // Visits whose gathers have begun and that have not been opened.
  std::deque<std::pair<size_t, TensorId>> gathered_;
  std::deque<Operation> gathers_;    // the awaits of these gathers
  std::set<TensorId> unsummed_;      // gradients not yet summed over all ranks
  std::vector<TensorId> scattered_;  // complete, but not yet being summed
  std::vector<TensorId> scattered_in_place_;
  std::vector<TensorId> summed_;
  std::vector<Reduction> reductions_;  // that have begun
  std::deque<Operation> late_;         // updates that wait for sums
  std::vector<TensorId> changed_;      // weights whose parts were updated
  std::vector<Operation> last_awaits_;
  bool is_divided_ = false;  // a collective was inserted into the current run of joined operations
  size_t end_of_last_ = 0;
};

}  // namespace

Program shard(const Program& program, const Sharding& sharding, const ShardingOptions& options,
              const ShardRole& role, const Target& target) {
  return options.ranks() == 1 ? program : Sharder(program, sharding, options, role, target).run();
}

}  // namespace snug::passes
