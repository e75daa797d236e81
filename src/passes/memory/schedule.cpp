// Stages: cut the list into runs of backward operations of one layer; find orders of each run by
// repeatedly taking the ready operation that leaves the fewest bytes alive, with and without
// looking one operation ahead; keep the order with the lowest peak within the run. Operations never
// move across layers.
#include "passes/memory/schedule.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <unordered_map>
#include <vector>

#include "passes/uses.h"
#include "program/ir/operands.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/kind.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

// The first and the last operation that touches each owner of bytes; -1 if none does.
struct Touches {
  explicit Touches(const Program& program)
      : first(program.tensors.size(), -1), last(last_touch_of_owner(program)) {
    for (size_t i = 0; i < program.operations.size(); ++i)
      for_each_tensor(program.operations[i], [&](TensorId id) {
        int32_t& position = first[static_cast<size_t>(program.owner(id))];
        if (position < 0) position = static_cast<int32_t>(i);
      });
  }
  std::vector<int32_t> first, last;
};

// A run: the operations [begin, end) of a program, and the orders that their dependencies allow.
// Positions are relative to `begin`.
class Run {
 public:
  Run(const Program& program, int32_t begin, int32_t end, const Touches& touches)
      : program_(program), begin_(begin), size_(end - begin) {
    for (int32_t i = begin; i < end; ++i) {
      std::vector<int32_t>& touched = touched_.emplace_back();
      for_each_tensor(program.operations[static_cast<size_t>(i)], [&](TensorId id) {
        const int32_t life = life_of(program.owner(id), touches);
        if (life < 0 || std::ranges::find(touched, life) != touched.end()) return;
        touched.push_back(life);
        ++lives_[static_cast<size_t>(life)].users;
      });
    }
    find_dependencies();
  }

  // The order with the lowest peak of live bytes; among equals the given order, then the one found
  // without looking ahead.
  std::vector<int32_t> best_order() const {
    std::vector<int32_t> best(static_cast<size_t>(size_));
    std::iota(best.begin(), best.end(), 0);
    int64_t least = peak_bytes(best);
    for (const bool looks_ahead : {false, true}) {
      std::vector<int32_t> other = greedy_order(looks_ahead);
      const int64_t bytes = peak_bytes(other);
      if (bytes >= least) continue;
      least = bytes;
      best = std::move(other);
    }
    return best;
  }

 private:
  // The life of an owner of bytes within the run, and how many of the run's operations touch it.
  struct Life {
    int64_t bytes = 0;
    bool is_born_here = false;
    bool dies_here = false;
    int32_t users = 0;
  };

  // The state of a partial order: for each operation the number of operations that it still waits
  // for, and for each life the number of operations that have yet to touch it.
  struct Progress {
    std::vector<int32_t> waiting;
    std::vector<int32_t> users_left;
    std::vector<bool> done;
  };

  const Operation& operation(int32_t i) const {
    return program_.operations[static_cast<size_t>(begin_) + static_cast<size_t>(i)];
  }
  const std::vector<int32_t>& touched(int32_t i) const { return touched_[static_cast<size_t>(i)]; }

  // The index of an owner's life, which is created if needed; -1 for an owner that outlasts the
  // program.
  int32_t life_of(TensorId owner, const Touches& touches) {
    const Tensor& tensor = program_.tensor(owner);
    if (tensor.lifetime != Lifetime::program) return -1;
    const auto [found, is_new] =
        life_of_owner_.try_emplace(owner, static_cast<int32_t>(lives_.size()));
    const auto at = static_cast<size_t>(owner);
    if (is_new)
      lives_.push_back(
          {tensor.bytes(), touches.first[at] >= begin_, touches.last[at] < begin_ + size_, 0});
    return found->second;
  }

  int32_t known_life(TensorId id) const {
    const auto found = id == kNone ? life_of_owner_.end() : life_of_owner_.find(program_.owner(id));
    return found == life_of_owner_.end() ? -1 : found->second;
  }

  void depend(int32_t user, int32_t on) {
    if (user == on || on < 0) return;
    users_[static_cast<size_t>(on)].push_back(user);
    ++waiting_[static_cast<size_t>(user)];
  }

  // Finds read-after-write, write-after-read and write-after-write dependencies between owners of
  // bytes.
  void find_dependencies() {
    users_.resize(static_cast<size_t>(size_));
    waiting_.assign(static_cast<size_t>(size_), 0);
    std::unordered_map<TensorId, int32_t> writer;
    std::unordered_map<TensorId, std::vector<int32_t>> readers;
    for (int32_t i = 0; i < size_; ++i) {
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
      keep_order_of_addends(i, writer);
      for (const TensorId id : operation(i).updates) write(id);
      for (const TensorId id : operation(i).writes) write(id);
    }
  }

  // Keeps the order of the operations that produce a sum's addends: `lower` lets the last of them
  // add to the others' result, so another order would change the rounding.
  void keep_order_of_addends(int32_t i, const std::unordered_map<TensorId, int32_t>& writer) {
    if (!operation(i).attributes.is<Add>()) return;
    std::vector<int32_t> makers;
    for (const TensorId id : operation(i).reads)
      if (const auto made = writer.find(program_.owner(id)); made != writer.end())
        makers.push_back(made->second);
    if (makers.size() == 2) depend(std::ranges::max(makers), std::ranges::min(makers));
  }

  Progress start() const {
    Progress progress{waiting_, {}, std::vector<bool>(static_cast<size_t>(size_), false)};
    for (const Life& life : lives_) progress.users_left.push_back(life.users);
    return progress;
  }

  void finish(int32_t i, Progress& progress) const {
    progress.done[static_cast<size_t>(i)] = true;
    for (const int32_t user : users_[static_cast<size_t>(i)])
      --progress.waiting[static_cast<size_t>(user)];
    for (const int32_t life : touched(i)) --progress.users_left[static_cast<size_t>(life)];
  }

  bool is_born(int32_t life, const Progress& progress) const {
    const Life& of = lives_[static_cast<size_t>(life)];
    return of.is_born_here && progress.users_left[static_cast<size_t>(life)] == of.users;
  }
  bool dies(int32_t life, const Progress& progress) const {
    return lives_[static_cast<size_t>(life)].dies_here &&
           progress.users_left[static_cast<size_t>(life)] == 1;
  }
  int64_t bytes_of(int32_t life) const { return lives_[static_cast<size_t>(life)].bytes; }

  // Bytes of the tensors that begin to live with operation `i`.
  int64_t born_bytes(int32_t i, const Progress& progress) const {
    int64_t bytes = 0;
    for (const int32_t life : touched(i))
      if (is_born(life, progress)) bytes += bytes_of(life);
    return bytes;
  }

  // Bytes of outputs that `lower` will place over inputs that die with operation `i`.
  int64_t shared_bytes(int32_t i, const Progress& progress) const {
    int64_t bytes = 0;
    std::vector<int32_t> taken;
    for (const auto& [output, input] : in_place_pairs(operation(i))) {
      const int32_t to = known_life(find_operand(operation(i), output));
      const int32_t from = known_life(find_operand(operation(i), input));
      const auto is_taken = [&](int32_t life) { return std::ranges::count(taken, life) > 0; };
      if (to < 0 || from < 0 || is_taken(to) || is_taken(from)) continue;
      if (!is_born(to, progress) || !dies(from, progress) || bytes_of(to) != bytes_of(from))
        continue;
      bytes += bytes_of(to);
      taken.insert(taken.end(), {to, from});
    }
    return bytes;
  }

  // Bytes alive after the operation minus bytes alive before it.
  int64_t growth(int32_t i, const Progress& progress) const {
    int64_t bytes = born_bytes(i, progress);
    for (const int32_t life : touched(i))
      if (dies(life, progress)) bytes -= bytes_of(life);
    return bytes;
  }

  // The growth by the operation or, if smaller, by the operation together with one that becomes
  // ready through it and frees more than it takes.
  int64_t outlook(int32_t i, const Progress& progress) const {
    Progress after = progress;
    finish(i, after);
    int64_t next = 0;
    for (const int32_t user : users_[static_cast<size_t>(i)])
      if (after.waiting[static_cast<size_t>(user)] == 0) next = std::min(next, growth(user, after));
    return growth(i, progress) + next;
  }

  int32_t best_ready(const Progress& progress, bool looks_ahead) const {
    int32_t best = -1;
    int64_t least = 0;
    for (int32_t i = 0; i < size_; ++i) {
      const auto at = static_cast<size_t>(i);
      if (progress.done[at] || progress.waiting[at] > 0) continue;
      int64_t bytes = growth(i, progress);
      if (looks_ahead && bytes > 0) bytes = std::max<int64_t>(1, outlook(i, progress));
      if (best < 0 || bytes < least) {
        best = i;
        least = bytes;
      }
    }
    return best;
  }

  std::vector<int32_t> greedy_order(bool looks_ahead) const {
    std::vector<int32_t> order;
    for (Progress progress = start(); static_cast<int32_t>(order.size()) < size_;) {
      order.push_back(best_ready(progress, looks_ahead));
      finish(order.back(), progress);
    }
    return order;
  }

  // The most bytes alive during any operation, minus the bytes alive before the run.
  int64_t peak_bytes(const std::vector<int32_t>& order) const {
    int64_t live = 0;
    int64_t peak = 0;
    Progress progress = start();
    for (const int32_t i : order) {
      peak = std::max(peak, live + born_bytes(i, progress) - shared_bytes(i, progress));
      live += growth(i, progress);
      finish(i, progress);
    }
    return peak;
  }

  const Program& program_;
  int32_t begin_;
  int32_t size_;
  std::vector<Life> lives_;
  std::unordered_map<TensorId, int32_t> life_of_owner_;
  std::vector<std::vector<int32_t>> touched_;  // the lives that each operation touches, each once
  std::vector<std::vector<int32_t>> users_;
  std::vector<int32_t> waiting_;
};

}  // namespace

Program schedule(Program program) {
  const Touches touches(program);
  const auto count = static_cast<int32_t>(program.operations.size());
  std::vector<Operation>& operations = program.operations;
  for (int32_t begin = 0; begin < count;) {
    int32_t end = begin + 1;
    const Operation& first = operations[static_cast<size_t>(begin)];
    while (end < count && operations[static_cast<size_t>(end)].layer == first.layer &&
           (operations[static_cast<size_t>(end)].phase == Phase::forward) ==
               (first.phase == Phase::forward))
      ++end;
    if (first.phase == Phase::backward || first.phase == Phase::recompute) {
      std::vector<Operation> moved;
      for (const int32_t i : Run(program, begin, end, touches).best_order())
        moved.push_back(operations[static_cast<size_t>(begin) + static_cast<size_t>(i)]);
      std::ranges::move(moved, operations.begin() + begin);
    }
    begin = end;
  }
  return program;
}

}  // namespace snug::passes
