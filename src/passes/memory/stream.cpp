// Stages: decide on which side (device or host) each operation works, and find the visits: ranges
// of the list in which operations touch a tensor from the other side; write the list again with a
// copy before each visit and, where the visit changes the tensor, a copy back after it. Tensors are
// always copied whole.
#include "passes/memory/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "base/error.h"
#include "passes/memory/stream_visits.h"
#include "program/kinds/kind.h"
#include "program/kinds/transfer/transfer.h"
#include "program/work/target.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

// A visit, and the copy of the tensor that it works on.
struct Visit : StreamVisit {
  TensorId copy = kNone;
  bool is_merged = false;  // continues with the copy of the visit before it
};

std::vector<Visit> visits_of(const StreamPlacement& placement) {
  std::vector<Visit> visits;
  for (const StreamVisit& visit : find_visits(placement)) visits.push_back({visit});
  return visits;
}

// A copy to be awaited after its visit, and the bytes that it occupies until then.
struct Pending {
  int32_t visit = -1;
  TensorId from = kNone;
  TensorId to = kNone;
  int64_t bytes = 0;
};

class Streamer {
 public:
  Streamer(const Program& program, const StreamOptions& options, const Target& target)
      : input_(program),
        window_(options.window_bytes),
        placement_{program, options, target.host_reaches_device()},
        visits_(visits_of(placement_)),
        result_{.name = program.name, .tensors = program.tensors, .operations = {}},
        visit_of_(program.tensors.size(), -1),
        held_(program.tensors.size(), -1) {
    result_.operations.reserve(program.operations.size());
    for (size_t id = 0; id < result_.tensors.size(); ++id)
      if (placement_.lies_there(static_cast<TensorId>(id)))
        result_.tensors[id].space = Space::pinned_host;
  }

  Program run() {
    for (size_t i = 0; i < input_.operations.size(); ++i) {
      const auto position = static_cast<int32_t>(i);
      begin_visits(position);
      await_returns_of(input_.operations[i]);
      prefetch(position);
      await_on_host(position);
      push(position);
      end_visits(position);
    }
    while (!pending_.empty()) await_oldest();
    return std::move(result_);
  }

 private:
  void add_copy(Visit& visit) {
    const Tensor& home = result_.tensor(visit.home);
    Tensor copy = home;
    const bool to_device = home.space == Space::pinned_host;
    copy.name = fmt::format("{}.{}.{}", home.name, to_device ? "streamed" : "on_host",
                            result_.tensors.size());
    copy.space = to_device ? Space::device : Space::pinned_host;
    copy.lifetime = Lifetime::program;
    if (copy.role == Role::batch)
      // Role batch is for tensors that the host sets, which only the original is.
      copy.role = Role::scalar;
    visit.copy = static_cast<TensorId>(result_.tensors.size());
    result_.tensors.push_back(std::move(copy));
  }

  int64_t bytes_of(const Visit& visit) const { return result_.tensor(visit.home).bytes(); }

  bool is_on_device(TensorId id) const { return result_.tensor(id).space == Space::device; }

  // `waits`: the channel that an await blocks.
  void emit_copy(Attributes attributes, TensorId from, TensorId to, const Operation& place,
                 Channel waits = Channel::compute) {
    Operation operation;
    operation.attributes = attributes;
    const bool begins = program::traits_of(operation).copying == Copying::begins;
    operation.reads = {from};
    (begins ? operation.writes : operation.updates) = {to};
    operation.phase = place.phase;
    operation.layer = place.layer;
    if (!begins)
      operation.channel = waits;
    else if (!placement_.reaches_device)
      operation.channel = is_on_device(to) ? Channel::host_to_device : Channel::device_to_host;
    result_.operations.push_back(std::move(operation));
  }

  const Operation& operation_at(int32_t i) const { return input_.operations[index(i)]; }

  void begin(Visit& visit, int32_t before) {
    add_copy(visit);
    await_returns_to(visit.home);
    held_[index(visit.home)] = static_cast<int32_t>(&visit - visits_.data());
    held_bytes_ += bytes_of(visit);
    if (visit.is_read) emit_copy(Transfer{}, visit.home, visit.copy, operation_at(before));
  }

  // Begins the visits whose first operation is `i`.
  void begin_visits(int32_t i) {
    int64_t needed = 0;
    for (size_t v = next_; v < visits_.size() && visits_[v].first == i; ++v)
      needed += bytes_of(visits_[v]);
    while (!pending_.empty() && held_bytes_ + needed > window_) await_oldest();
    for (; next_ < visits_.size() && visits_[next_].first == i; ++next_) begin(visits_[next_], i);
    for (; needed_ < visits_.size() && visits_[needed_].first == i; ++needed_) {
      const Visit& visit = visits_[needed_];
      if (visit.is_merged) continue;
      if (visit.is_read && is_on_device(visit.copy))
        emit_copy(Await{}, visit.home, visit.copy, operation_at(i));
      visit_of_[index(visit.home)] = static_cast<int32_t>(needed_);
    }
  }

  // Emits the awaits for copies that operation `i` reads on the host, just before the operation:
  // the host channel waits for them.
  void await_on_host(int32_t i) {
    for (size_t v = needed_; v-- > 0 && visits_[v].first == i;)
      if (visits_[v].is_read && !visits_[v].is_merged && !is_on_device(visits_[v].copy))
        emit_copy(Await{}, visits_[v].home, visits_[v].copy, operation_at(i), Channel::host);
  }

  // Begins the copies for later operations, in their order, as far as the window allows. Half of
  // the window is reserved for copies on their way back.
  void prefetch(int32_t i) {
    while (pending_bytes_ > window_ / 2) await_oldest();
    for (; next_ < visits_.size(); ++next_) {
      Visit& visit = visits_[next_];
      if (visit.earliest > i || held_bytes_ + bytes_of(visit) > window_) return;
      if (!merge(visit)) begin(visit, i);
    }
  }

  // Where the previous visit's copy of the tensor still exists, the visit continues with it.
  bool merge(Visit& visit) {
    const int32_t held = held_[index(visit.home)];
    if (held < 0) return false;
    Visit& before = visits_[index(held)];
    before.last = visit.last;
    before.is_changed |= visit.is_changed;
    visit.is_merged = true;
    return true;
  }

  // Awaits copies back to a tensor before any operation touches the tensor itself.
  void await_returns_of(const Operation& operation) {
    for_each_tensor(operation, [&](TensorId id) {
      const TensorId owner = input_.owner(id);
      if (visit_of_[index(owner)] < 0) await_returns_to(owner);
    });
  }

  void await_returns_to(TensorId home) {
    const auto is_of_home = [&](const Pending& copy) {
      return visits_[index(copy.visit)].home == home;
    };
    while (std::ranges::any_of(pending_, is_of_home)) await_oldest();
  }

  void await_oldest() {
    const Pending copy = pending_.front();
    pending_.pop_front();
    emit_copy(Await{}, copy.from, copy.to, operation_at(visits_[index(copy.visit)].last));
    held_bytes_ -= copy.bytes;
    pending_bytes_ -= copy.bytes;
  }

  void add_pending(const Pending& copy) {
    pending_.push_back(copy);
    pending_bytes_ += copy.bytes;
  }

  void end_visits(int32_t i) {
    for_each_tensor(operation_at(i), [&](TensorId id) {
      const int32_t v = visit_of_[index(input_.owner(id))];
      if (v >= 0 && visits_[index(v)].last == i) end(v);
    });
  }

  // For a copy to the host, only the host channel has waited so far. The device must wait for it
  // too, before its side of the copy may change.
  void end(int32_t v) {
    const Visit& visit = visits_[index(v)];
    visit_of_[index(visit.home)] = -1;
    held_[index(visit.home)] = -1;
    const int64_t bytes = bytes_of(visit);
    const bool is_open = visit.is_read && !is_on_device(visit.copy);
    if (!visit.is_changed) {
      if (is_open)
        add_pending({v, visit.home, visit.copy, bytes});
      else
        held_bytes_ -= bytes;
      return;
    }
    if (is_open) emit_copy(Await{}, visit.home, visit.copy, operation_at(visit.last));
    emit_copy(Transfer{}, visit.copy, visit.home, operation_at(visit.last));
    add_pending({v, visit.copy, visit.home, bytes});
  }

  // The tensor that replaces `id` in an operation of the input. A copy that is kept for later
  // operations on the other side does not replace it in operations in between.
  TensorId current(const Operation& operation, bool on_host, TensorId id) {
    const int32_t v = visit_of_[index(input_.owner(id))];
    if (v < 0 || placement_.touches_in_place(operation, on_host, id)) return id;
    const TensorId copy = visits_[index(v)].copy;
    if (!input_.tensor(id).is_view()) return copy;
    Tensor view = input_.tensor(id);
    view.name = fmt::format("{}.{}", view.name, result_.tensors.size());
    view.view.base = copy;
    view.space = result_.tensor(copy).space;
    view.lifetime = Lifetime::program;
    result_.tensors.push_back(std::move(view));
    return static_cast<TensorId>(result_.tensors.size() - 1);
  }

  void push(int32_t i) {
    Operation operation = operation_at(i);
    operation.on_host = placement_.is_on_host(operation);
    for (auto* ids : {&operation.reads, &operation.writes, &operation.updates})
      for (TensorId& id : *ids) id = current(operation_at(i), operation.on_host, id);
    // Joined operations between which a copy was inserted no longer form one launch, and neither do
    // those joined to them.
    is_divided_ = operation.joined && (is_divided_ || result_.operations.size() != end_of_last_ ||
                                       operation.on_host || result_.operations.back().on_host);
    if (is_divided_) operation.joined = false;
    if (operation.on_host && !placement_.reaches_device) {
      operation.channel = Channel::host;
      operation.launches = 0;  // the device launches nothing for it
    }
    result_.operations.push_back(std::move(operation));
    end_of_last_ = result_.operations.size();
  }

  const Program& input_;
  const int64_t window_;
  const StreamPlacement placement_;
  std::vector<Visit> visits_;
  Program result_;
  std::vector<int32_t> visit_of_;  // by owner: the current visit, else -1
  // By owner: the visit whose copy exists or is under way, else -1.
  std::vector<int32_t> held_;
  size_t next_ = 0;              // the first visit whose copy has not been started
  size_t needed_ = 0;            // the first visit that no operation has needed so far
  std::deque<Pending> pending_;  // oldest first
  int64_t pending_bytes_ = 0;
  int64_t held_bytes_ = 0;   // bytes of all copies
  bool is_divided_ = false;  // a copy was inserted into the current run of joined operations
  size_t end_of_last_ = 0;   // the position in the result after the last operation of the input
};

}  // namespace

bool lies_on_host(const Tensor& tensor, const StreamOptions& options) {
  if (tensor.lifetime == Lifetime::program || tensor.bytes() < options.threshold_bytes)
    return false;
  switch (tensor.role) {
    case Role::weight:
    case Role::quant_state:
    case Role::adapter:
      return options.params;
    case Role::master:
    case Role::moment:
    case Role::gradient:
      return options.optimizer;
    default:
      return false;
  }
}

Program stream(const Program& program, const StreamOptions& options, const Target& target) {
  return options.moves_any() ? Streamer(program, options, target).run() : program;
}

}  // namespace snug::passes
