#include "passes/sharding/shard_homes.h"

#include <fmt/format.h>

#include "base/error.h"

namespace snug::passes {

using namespace program;  // NOLINT: passes speak the program's words throughout

ShardHomes::ShardHomes(const Program& input, const ShardedTensors& sharded, int32_t shards,
                       Program& result)
    : input_(input), shards_(shards), result_(result) {
  for (size_t id = 0; id < input.tensors.size(); ++id)
    make_home(static_cast<TensorId>(id), sharded);
}

void ShardHomes::make_home(TensorId id, const ShardedTensors& sharded) {
  const Tensor& original = input_.tensor(id);
  const auto& part = sharded.find(id);
  if (!part || original.is_view()) return;
  Tensor& home = result_.tensor(id);
  home.whole = original.shape;
  home.shape = {part->is_padded ? part->elements * shards_ : part->elements};
  home.rank_step = part->is_padded ? 0 : part->elements;
  sharded_[id] = *part;
}

bool ShardHomes::is_padded(TensorId home) const {
  const auto sharded = sharded_.find(home);
  return sharded != sharded_.end() && sharded->second.is_padded;
}

TensorId ShardHomes::whole(TensorId home) const {
  const auto found = wholes_.find(home);
  return found == wholes_.end() ? kNone : found->second;
}

TensorId ShardHomes::add(Tensor tensor) {
  result_.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(result_.tensors.size() - 1);
}

TensorId ShardHomes::add_whole(TensorId home, Role role) {
  Tensor whole = result_.tensor(home);
  whole.name = fmt::format("{}.whole.{}", whole.name, result_.tensors.size());
  whole.shape = {sharded_.at(home).elements * shards_};
  whole.role = role;
  whole.lifetime = Lifetime::program;
  whole.rank_step = 0;
  return add(std::move(whole));
}

// `seen` itself where it is no view; otherwise the same view on `base`, which is flat memory.
TensorId ShardHomes::view_on(TensorId seen, TensorId base) {
  const auto [entry, is_new] = views_.try_emplace({seen, base}, kNone);
  if (!is_new) return entry->second;
  Tensor view = input_.tensor(seen);
  view.name = fmt::format("{}.seen.{}", view.name, result_.tensors.size());
  if (!view.is_view()) view.view.strides = dense_strides(view.shape);
  view.view.base = base;
  view.lifetime = result_.tensor(base).lifetime;
  view.role = result_.tensor(base).role;
  return entry->second = add(std::move(view));
}

// This rank's part of a tensor that every rank holds whole.
TensorId ShardHomes::own_part(TensorId home) {
  const auto [entry, is_new] = own_parts_.try_emplace(home, kNone);
  if (!is_new) return entry->second;
  const int64_t elements = sharded_.at(home).elements;
  Tensor part = result_.tensor(home);
  part.name = fmt::format("{}.own", part.name);
  part.shape = {elements};
  part.view = {.base = home, .strides = dense_strides(part.shape), .rank_step = elements};
  return entry->second = add(std::move(part));
}

TensorId ShardHomes::operand(TensorId id, bool on_parts) {
  const TensorId home = input_.owner(id);
  if (!is_sharded(home)) return id;
  if (on_parts) return is_padded(home) ? own_part(home) : home;
  if (is_padded(home)) return view_on(id, home);
  SNUG_CHECK(whole(home) != kNone, "all of {} is not there", input_.tensor(home).name);
  return view_on(id, whole(home));
}

}  // namespace snug::passes
