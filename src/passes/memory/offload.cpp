// Stages: find where each layer ends and where its backward pass begins, and which checkpoints the
// layer keeps; determine for each of these the operations next to which its copies start and are
// awaited; write the list again with the copies. Only checkpoints are offloaded, and only one layer
// is fetched ahead.
#include "passes/memory/offload.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "program/kinds/transfer/transfer.h"
#include "program/work/target.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

// A checkpoint of a layer, with positions in the list.
struct Checkpoint {
  TensorId id = kNone;
  int32_t layer = -1;
  int32_t written = -1;
  int32_t read_back = -1;  // the first operation after the forward pass that reads it
  TensorId host = kNone;   // its copy in host memory
};

struct Layer {
  int32_t end = -1;             // the layer's last operation in the forward pass
  int32_t backward_begin = -1;  // the layer's first operation after the forward pass
};

class Offload {
 public:
  Offload(const Program& program, const Target& target)
      : input_(program),
        is_side_by_side_(!target.host_reaches_device()),
        result_(program),
        before_(program.operations.size()),
        after_(program.operations.size()),
        fetched_(program.tensors.size(), kNone) {
    result_.operations.clear();
  }

  Program run() {
    find_layers();
    std::vector<Checkpoint> checkpoints = find_checkpoints();
    for (Checkpoint& checkpoint : checkpoints) move_out(checkpoint);
    // Awaits before an operation precede the copies that begin there for the next layer.
    for (size_t i = checkpoints.size(); i-- > 0;) bring_back(checkpoints[i]);
    for (size_t i = 0; i < input_.operations.size(); ++i) push(i);
    return std::move(result_);
  }

 private:
  void find_layers() {
    for (size_t i = 0; i < input_.operations.size(); ++i) {
      const Operation& operation = input_.operations[i];
      if (operation.layer < 0) continue;
      if (index(operation.layer) >= layers_.size()) layers_.resize(index(operation.layer) + 1);
      Layer& layer = layers_[index(operation.layer)];
      if (operation.phase == Phase::forward)
        layer.end = static_cast<int32_t>(i);
      else if (layer.backward_begin < 0)
        layer.backward_begin = static_cast<int32_t>(i);
    }
  }

  // The checkpoints of all layers except the last, in order of layer, and within a layer in the
  // order in which they are written.
  std::vector<Checkpoint> find_checkpoints() const {
    std::vector<Checkpoint> found(input_.tensors.size());
    for (size_t i = 0; i < input_.operations.size(); ++i) {
      const Operation& operation = input_.operations[i];
      const auto position = static_cast<int32_t>(i);
      for (const TensorId id : operation.writes) found[index(input_.owner(id))].written = position;
      for (const TensorId id : operation.reads) {
        Checkpoint& owner = found[index(input_.owner(id))];
        if (operation.phase == Phase::forward || owner.read_back >= 0) continue;
        owner.read_back = position;
      }
    }
    for (size_t id = 0; id < found.size(); ++id) {
      found[id].id = static_cast<TensorId>(id);
      found[id].layer = input_.tensors[id].layer;
    }
    std::erase_if(found, [&](const Checkpoint& checkpoint) {
      return input_.tensor(checkpoint.id).role != Role::checkpoint || checkpoint.layer < 0 ||
             checkpoint.layer + 1 >= static_cast<int32_t>(layers_.size()) ||
             checkpoint.read_back < 0;
    });
    std::ranges::stable_sort(found, {}, &Checkpoint::written);
    return found;
  }

  void move_out(Checkpoint& checkpoint) {
    const int32_t end = layers_[index(checkpoint.layer)].end;
    SNUG_CHECK(checkpoint.written < end, "{} is written when its layer is done",
               input_.tensor(checkpoint.id).name);
    checkpoint.host = add_copy(checkpoint.id, ".offloaded", Space::pinned_host);
    after_[index(checkpoint.written)].push_back(transfer(checkpoint.id, checkpoint.host));
    after_[index(end)].push_back(await(checkpoint.id, checkpoint.host));
  }

  void bring_back(const Checkpoint& checkpoint) {
    const int32_t begin = layers_[index(checkpoint.layer + 1)].backward_begin;
    const int32_t end = layers_[index(checkpoint.layer)].backward_begin;
    SNUG_CHECK(0 <= begin && begin < end && end <= checkpoint.read_back,
               "{} is read before its layer's backward pass begins",
               input_.tensor(checkpoint.id).name);
    const TensorId back = add_copy(checkpoint.id, ".fetched", Space::device);
    fetched_[index(checkpoint.id)] = back;
    before_[index(begin)].push_back(transfer(checkpoint.host, back));
    before_[index(end)].push_back(await(checkpoint.host, back));
  }

  TensorId add_copy(TensorId id, const char* suffix, Space space) {
    Tensor copy = input_.tensor(id);
    copy.name += suffix;
    copy.space = space;
    result_.tensors.push_back(std::move(copy));
    return static_cast<TensorId>(result_.tensors.size() - 1);
  }

  Operation transfer(TensorId from, TensorId to) const {
    Operation operation;
    operation.attributes = Transfer{};
    operation.reads = {from};
    operation.writes = {to};
    const bool to_device = result_.tensor(to).space == Space::device;
    if (is_side_by_side_)
      operation.channel = to_device ? Channel::host_to_device : Channel::device_to_host;
    return operation;
  }

  static Operation await(TensorId from, TensorId to) {
    Operation operation;
    operation.attributes = Await{};
    operation.reads = {from};
    operation.updates = {to};
    return operation;
  }

  // Appends an operation of the input, with the copies and awaits before and after it.
  void push(size_t i) {
    Operation operation = input_.operations[i];
    const auto push_copies = [&](std::vector<Operation>& copies) {
      for (Operation& copy : copies) {
        copy.phase = operation.phase;
        copy.layer = operation.layer;
        result_.operations.push_back(std::move(copy));
      }
    };
    if (operation.phase != Phase::forward) read_fetched(operation);
    push_copies(before_[i]);
    result_.operations.push_back(operation);
    push_copies(after_[i]);
  }

  void read_fetched(Operation& operation) {
    for (TensorId& id : operation.reads)
      if (const TensorId back = fetched(id); back != kNone) id = back;
  }

  // A view of a checkpoint becomes one of what was fetched, when it is first read.
  TensorId fetched(TensorId id) {
    const TensorId base = fetched_[index(input_.owner(id))];
    TensorId& known = fetched_[index(id)];
    if (known != kNone || base == kNone) return known;
    known = add_copy(id, ".fetched", Space::device);
    result_.tensors.back().view.base = base;
    return known;
  }

  const Program& input_;
  bool is_side_by_side_;  // copies run concurrently with compute
  Program result_;
  std::vector<Layer> layers_;
  std::vector<std::vector<Operation>> before_;  // by operation of the input
  std::vector<std::vector<Operation>> after_;
  std::vector<TensorId> fetched_;  // by tensor of the input: the tensor that replaces it; kNone:
                                   // none does
};

}  // namespace

Program offload(const Program& program, const Target& target) {
  return Offload(program, target).run();
}

}  // namespace snug::passes
