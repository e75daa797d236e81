// Stages: choose which activations are dropped; keep those that the backward pass reads and that
// are not dropped; go through the backward list and, before an operation that reads a dropped
// activation, emit the operations that produce it from kept tensors. Each producer is emitted at
// most once, and only if something needs its output. So the down projection never runs again, since
// no derivative reads its output, nor does a frozen layer: recomputation starts at the residual
// stream, which is kept where recomputed operations read it.
#include "passes/gradient/recompute.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "program/kinds/kind.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

class Recompute {
 public:
  Recompute(const Program& program, const RecomputeModes& modes) : input_(program), modes_(modes) {
    result_.name = program.name;
    result_.tensors = program.tensors;
    result_.operations.reserve(program.operations.size());
    producer_.assign(program.tensors.size(), -1);
    dropped_.assign(program.tensors.size(), false);
    kept_.assign(program.tensors.size(), true);
    readers_.assign(program.tensors.size(), 0);
  }

  Program run() {
    find_producers();
    choose_dropped();
    find_kept();
    for (const Operation& operation : input_.operations)
      if (operation.phase == Phase::forward)
        result_.operations.push_back(operation);
      else
        push_backward(operation);
    return std::move(result_);
  }

 private:
  // Producers, kept and dropped flags are stored by owner of bytes, so that views share them.
  size_t owner_index(TensorId id) const { return index(input_.owner(id)); }

  bool is_layer_input(TensorId id, const Operation& producer) const {
    return input_.tensor(id).layer != producer.layer;
  }

  // Whether a layer's operation writes it for other layers, which then need not compute this layer
  // again.
  bool leaves_layer(TensorId id, const Operation& producer) const {
    return producer.layer >= 0 && is_layer_input(id, producer);
  }

  void find_producers() {
    for (size_t i = 0; i < input_.operations.size(); ++i) {
      const Operation& operation = input_.operations[i];
      if (operation.phase != Phase::forward) continue;
      for (const TensorId id : operation.writes)
        if (input_.tensor(id).lifetime == Lifetime::program)
          producer_[owner_index(id)] = static_cast<int32_t>(i);
      for (const TensorId id : operation.reads) ++readers_[owner_index(id)];
    }
  }

  void choose_dropped() {
    for (const Operation& operation : input_.operations) {
      if (operation.phase != Phase::forward) continue;
      const RecomputeMode mode = modes_.of_layer(operation.layer);
      if (mode == RecomputeMode::keep_all) {
        mark_checkpoints(operation);
        continue;
      }
      const bool attention = mode == RecomputeMode::attention &&
                             traits_of(operation).recomputing == Recomputing::attention;
      for (const TensorId id : operation.writes)
        if (!leaves_layer(id, operation) &&
            (attention || traits_of(operation).is_cheap() || rotates_dropped(operation)))
          drop(id);
      for (const TensorId id : operation.reads) {
        if (attention) drop_with_norm(id, operation.layer);
        if (mode == RecomputeMode::gate_up &&
            traits_of(operation).recomputing == Recomputing::mlp_activation)
          drop_with_norm(id, operation.layer);
      }
      mark_checkpoints(operation);
      if (keeps_checkpoints(mode)) drop_layer_outputs(operation, mode);
    }
  }

  // Marks the input of a layer that keeps only checkpoints, whatever the layer before it keeps.
  void mark_checkpoints(const Operation& operation) {
    for (const TensorId id : operation.writes) {
      const int32_t reader = input_.tensor(id).layer;
      if (is_layer_input(id, operation) &&
          keeps_checkpoints(modes_.of_layer(reader < 0 ? operation.layer : reader)) &&
          producer_[index(id)] >= 0)
        result_.tensor(id).role = Role::checkpoint;
    }
  }

  void drop(TensorId id) {
    if (producer_[owner_index(id)] >= 0) dropped_[owner_index(id)] = true;
  }

  // The input of a norm or a rotation, which the operation only transforms; kNone for other kinds.
  static TensorId passed_on(const Operation& operation) {
    const OperandName name = traits_of(operation).passes_on;
    return name.empty() ? kNone : find_operand(operation, name);
  }

  // Whether the operation rotates a dropped tensor. Where heads are normed before they are rotated,
  // the input of the norm is kept, and the outputs of both are cheap to recompute from it.
  bool rotates_dropped(const Operation& operation) const {
    const TensorId input = passed_on(operation);
    return input != kNone && dropped_[owner_index(input)];
  }

  // Drops an input of an operation, and also the input of the norm or rotation that produced it.
  // What a layer reads but belongs to no layer is read by several, and stays.
  void drop_with_norm(TensorId id, int32_t layer) {
    const int32_t producer = producer_[owner_index(id)];
    if (producer < 0 || (layer >= 0 && input_.tensor(input_.owner(id)).layer < 0)) return;
    drop(id);
    const TensorId input = passed_on(input_.operations[index(producer)]);
    if (input != kNone) drop_with_norm(input, layer);
  }

  // The operation that produces the first layer's input belongs to no layer; nothing else outside
  // layers is dropped.
  void drop_layer_outputs(const Operation& operation, RecomputeMode mode) {
    const bool keeps = mode == RecomputeMode::all_but_attention &&
                       traits_of(operation).recomputing == Recomputing::attention;
    for (const TensorId id : operation.writes) {
      const bool is_made = producer_[index(id)] >= 0;
      if (keeps && is_made)
        result_.tensor(id).role = Role::checkpoint;
      else if (operation.layer >= 0 && traits_of(operation).recomputing != Recomputing::kept &&
               !(is_layer_input(id, operation) && is_made))
        drop(id);
    }
  }

  // Keeps what the backward pass reads and no rule drops. All other results of the forward pass are
  // freed.
  void find_kept() {
    for (size_t id = 0; id < producer_.size(); ++id) kept_[id] = producer_[id] < 0;
    for (const Operation& operation : input_.operations)
      if (operation.phase != Phase::forward)
        for (const TensorId id : operation.reads)
          if (!dropped_[owner_index(id)]) kept_[owner_index(id)] = true;
    std::vector<bool> visited(producer_.size(), false);
    for (const Operation& operation : input_.operations)
      if (operation.phase != Phase::forward)
        for (const TensorId id : operation.reads) keep_sources(input_.owner(id), visited);
  }

  // Keeps the residual stream where a layer wrote it and several operations read it, if recomputed
  // operations need it. The embedding of the tokens is recomputed instead.
  void keep_sources(TensorId owner, std::vector<bool>& visited) {
    if (kept_[index(owner)] || visited[index(owner)]) return;
    visited[index(owner)] = true;
    for (const TensorId id : input_.operations[index(producer_[index(owner)])].reads) {
      const size_t source = owner_index(id);
      const bool is_made = producer_[source] >= 0;
      if (is_made && !dropped_[source] && readers_[source] > 1 &&
          input_.operations[index(producer_[source])].layer >= 0)
        kept_[source] = true;
      else
        keep_sources(input_.owner(id), visited);
    }
  }

  void push_backward(Operation operation) {
    for (TensorId& id : operation.reads) id = available(id);
    result_.operations.push_back(std::move(operation));
  }

  // Returns the tensor itself if it is kept, else its recomputed copy, after emitting producers as
  // needed.
  TensorId available(TensorId id) {
    const TensorId owner = input_.owner(id);
    if (kept_[index(owner)]) return id;
    if (const auto found = again_.find(id); found != again_.end()) return found->second;
    if (!again_.contains(owner)) {
      Operation operation = input_.operations[index(producer_[index(owner)])];
      for (TensorId& read : operation.reads) read = available(read);
      for (TensorId& write : operation.writes) write = copy_of(write);
      operation.phase = Phase::recompute;
      result_.operations.push_back(std::move(operation));
    }
    return id == owner ? again_.at(id) : copy_of(id);
  }

  TensorId copy_of(TensorId id) {
    Tensor tensor = input_.tensor(id);
    if (tensor.is_view()) tensor.view.base = again_.at(tensor.view.base);
    tensor.name += ".again";
    result_.tensors.push_back(std::move(tensor));
    const auto copy = static_cast<TensorId>(result_.tensors.size() - 1);
    again_[id] = copy;
    kept_.push_back(true);
    return copy;
  }

  const Program& input_;
  const RecomputeModes& modes_;
  Program result_;
  std::vector<int32_t> producer_;  // writer of each tensor in the forward pass; -1: none
  std::vector<int32_t> readers_;   // number of forward operations that read each tensor
  std::vector<bool> dropped_;
  std::vector<bool> kept_;
  std::unordered_map<TensorId, TensorId> again_;
};

}  // namespace

Program recompute(const Program& program, const RecomputeModes& modes) {
  return Recompute(program, modes).run();
}

}  // namespace snug::passes
