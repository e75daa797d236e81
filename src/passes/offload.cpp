// Stages: find the checkpoints of all layers but the last; note before and behind which operations
// each is begun to be copied and awaited; write the list anew with these. What it does not do:
// offload anything else that is kept, or fetch more than one layer ahead.
#include "passes/offload.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

// A layer's input, by positions in the list.
struct Checkpoint {
  TensorId id = kNone;
  int32_t layer = -1;
  int32_t written = -1;
  int32_t read_back = -1;  // the first operation behind the forward pass that reads it
};

class Offload {
 public:
  Offload(const Program& program, const Target& target)
      : input_(program),
        stream_(target.host_reaches_device() ? int8_t{0} : int8_t{1}),
        result_(program),
        before_(program.operations.size()),
        behind_(program.operations.size()),
        fetched_(program.tensors.size(), kNone) {
    result_.operations.clear();
  }

  Program run() {
    const std::vector<Checkpoint> checkpoints = find_checkpoints();
    // From the last to the first: what is awaited before an operation comes before the next copy.
    for (size_t i = checkpoints.size(); i-- > 1;) move(checkpoints[i - 1], checkpoints[i]);
    for (size_t i = 0; i < input_.operations.size(); ++i) push(i);
    return std::move(result_);
  }

 private:
  static size_t index(int32_t id) { return static_cast<size_t>(id); }

  // By layer, from the first.
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
             checkpoint.read_back < 0;
    });
    std::ranges::sort(found, {}, &Checkpoint::layer);
    return found;
  }

  // `next`: the checkpoint of the layer behind it.
  void move(const Checkpoint& checkpoint, const Checkpoint& next) {
    SNUG_CHECK(checkpoint.written < next.written && next.read_back < checkpoint.read_back,
               "layers {} and {} are not one behind the other", checkpoint.layer, next.layer);
    const TensorId host = add_copy(checkpoint.id, ".offloaded", Space::pinned_host);
    const TensorId back = add_copy(checkpoint.id, ".fetched", Space::device);
    fetched_[index(checkpoint.id)] = back;

    auto& written = behind_[index(checkpoint.written)];
    written.push_back(transfer(checkpoint.id, host));
    auto& ended = behind_[index(next.written)];
    ended.insert(ended.begin(), await(checkpoint.id, host));
    before_[index(next.read_back)].push_back(transfer(host, back));
    before_[index(checkpoint.read_back)].push_back(await(host, back));
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
    operation.stream = stream_;
    return operation;
  }

  static Operation await(TensorId from, TensorId to) {
    Operation operation;
    operation.attributes = Await{};
    operation.reads = {from, to};
    return operation;
  }

  // An operation of the input with what comes before and behind it.
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
    push_copies(behind_[i]);
  }

  void read_fetched(Operation& operation) const {
    for (TensorId& id : operation.reads) {
      const TensorId back = fetched_[index(input_.owner(id))];
      SNUG_CHECK(back == kNone || !input_.tensor(id).is_view(), "{} is a view of a layer's input",
                 input_.tensor(id).name);
      if (back != kNone) id = back;
    }
  }

  const Program& input_;
  int8_t stream_;
  Program result_;
  std::vector<std::vector<Operation>> before_;  // by operation of the input
  std::vector<std::vector<Operation>> behind_;
  std::vector<TensorId> fetched_;  // by tensor of the input: what takes its place; kNone: itself
};

}  // namespace

Program offload(const Program& program, const Target& target) {
  return Offload(program, target).run();
}

}  // namespace snug::passes
