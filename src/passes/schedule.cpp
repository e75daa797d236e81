// Stages: cut the list into runs of backward operations of one layer; within a run, repeatedly take
// the ready operation that leaves the fewest bytes alive (the given order breaks ties); keep the
// result if the whole program's peak is lower. What it does not do: move operations across layers.
#include "passes/schedule.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "passes/layout.h"
#include "passes/place.h"
#include "passes/uses.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

int64_t peak_bytes(const Program& program) {
  const std::vector<Interval> intervals = live_intervals(program);
  std::vector<LiveRange> blocks;
  for (size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (tensor.lifetime == Lifetime::program && !tensor.is_view() &&
        intervals[id].first <= intervals[id].last)
      blocks.push_back({tensor.bytes(), intervals[id].first, intervals[id].last});
  }
  return peak_live_bytes(blocks);
}

// One run of operations, scheduled greedily.
class Run {
 public:
  Run(const Program& program, int32_t begin, int32_t end, const std::vector<int32_t>& last_touch)
      : program_(program), begin_(begin), size_(end - begin) {
    for (int32_t i = begin; i < end; ++i)
      for_each_tensor(operation(i - begin), [&](TensorId id) {
        const TensorId owner = program.owner(id);
        const bool dies = last_touch[static_cast<size_t>(owner)] < end;
        if (program.tensor(owner).lifetime == Lifetime::program) dies_here_[owner] = dies;
      });
    find_dependencies();
  }

  std::vector<int32_t> order() {
    std::vector<int32_t> order;
    std::vector<bool> done(static_cast<size_t>(size_), false);
    while (static_cast<int32_t>(order.size()) < size_) {
      const int32_t next = best_ready(done);
      done[static_cast<size_t>(next)] = true;
      order.push_back(begin_ + next);
      for (const int32_t user : users_[static_cast<size_t>(next)])
        --waiting_[static_cast<size_t>(user)];
      for_each_tensor(operation(next), [&](TensorId id) { --touches_[program_.owner(id)]; });
      for (const TensorId id : operation(next).writes) alive_[program_.owner(id)] = true;
    }
    return order;
  }

 private:
  const Operation& operation(int32_t i) const {
    return program_.operations[static_cast<size_t>(begin_) + static_cast<size_t>(i)];
  }

  void depend(int32_t user, int32_t on) {
    if (user == on || on < 0) return;
    users_[static_cast<size_t>(on)].push_back(user);
    ++waiting_[static_cast<size_t>(user)];
  }

  // Read after write, write after read, write after write, on owners of bytes.
  void find_dependencies() {
    users_.resize(static_cast<size_t>(size_));
    waiting_.assign(static_cast<size_t>(size_), 0);
    std::unordered_map<TensorId, int32_t> writer;
    std::unordered_map<TensorId, std::vector<int32_t>> readers;
    for (int32_t i = 0; i < size_; ++i) {
      for_each_tensor(operation(i), [&](TensorId id) { ++touches_[program_.owner(id)]; });
      const auto read = [&](TensorId id) {
        const TensorId owner = program_.owner(id);
        if (writer.contains(owner)) depend(i, writer[owner]);
        readers[owner].push_back(i);
      };
      const auto write = [&](TensorId id) {
        const TensorId owner = program_.owner(id);
        if (writer.contains(owner)) depend(i, writer[owner]);
        for (const int32_t reader : readers[owner]) depend(i, reader);
        readers[owner].clear();
        writer[owner] = i;
      };
      for (const TensorId id : operation(i).reads) read(id);
      for (const TensorId id : operation(i).updates) read(id);
      for (const TensorId id : operation(i).updates) write(id);
      for (const TensorId id : operation(i).writes) write(id);
    }
  }

  // Bytes alive after the operation minus before.
  int64_t growth(int32_t i) const {
    int64_t bytes = 0;
    std::vector<TensorId> counted;
    for_each_tensor(operation(i), [&](TensorId id) {
      const TensorId owner = program_.owner(id);
      const auto found = dies_here_.find(owner);
      if (found == dies_here_.end()) return;
      if (std::find(counted.begin(), counted.end(), owner) != counted.end()) return;
      counted.push_back(owner);
      if (found->second && touches_.at(owner) == 1) bytes -= program_.tensor(owner).bytes();
    });
    for (const TensorId id : operation(i).writes)
      if (dies_here_.contains(program_.owner(id)) && !alive_.contains(program_.owner(id)))
        bytes += program_.tensor(program_.owner(id)).bytes();
    return bytes;
  }

  int32_t best_ready(const std::vector<bool>& done) const {
    int32_t best = -1;
    int64_t least = 0;
    for (int32_t i = 0; i < size_; ++i) {
      if (done[static_cast<size_t>(i)] || waiting_[static_cast<size_t>(i)] > 0) continue;
      const int64_t bytes = growth(i);
      if (best < 0 || bytes < least) {
        best = i;
        least = bytes;
      }
    }
    return best;
  }

  const Program& program_;
  int32_t begin_;
  int32_t size_;
  std::vector<std::vector<int32_t>> users_;
  std::vector<int32_t> waiting_;
  std::unordered_map<TensorId, int32_t> touches_;
  std::unordered_map<TensorId, bool> dies_here_;
  std::unordered_map<TensorId, bool> alive_;
};

}  // namespace

Program schedule(Program program) {
  std::vector<int32_t> order(program.operations.size());
  std::iota(order.begin(), order.end(), 0);
  const std::vector<int32_t> last_touch = last_touch_of_owner(program);
  const auto count = static_cast<int32_t>(program.operations.size());
  const auto& operations = program.operations;
  for (int32_t begin = 0; begin < count;) {
    int32_t end = begin + 1;
    const Operation& first = operations[static_cast<size_t>(begin)];
    while (end < count && operations[static_cast<size_t>(end)].layer == first.layer &&
           (operations[static_cast<size_t>(end)].phase == Phase::forward) ==
               (first.phase == Phase::forward))
      ++end;
    if (first.phase == Phase::backward || first.phase == Phase::recompute) {
      const std::vector<int32_t> of_run = Run(program, begin, end, last_touch).order();
      std::ranges::copy(of_run, order.begin() + begin);
    }
    begin = end;
  }
  const int64_t given_bytes = peak_bytes(program);
  std::vector<Operation> moved(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    moved[i] = std::move(program.operations[static_cast<size_t>(order[i])]);
  program.operations.swap(moved);
  if (peak_bytes(program) < given_bytes) return program;
  for (size_t i = 0; i < order.size(); ++i)
    moved[static_cast<size_t>(order[i])] = std::move(program.operations[i]);
  program.operations.swap(moved);
  return program;
}

}  // namespace snug::passes
