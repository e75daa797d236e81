// Walks through the operations; at each it sorts the live tensors by offset and compares
// neighbours.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "program/kinds/kind.h"
#include "program/verify/verify.h"

namespace snug::program {
namespace {

// The first and last operation that touches an owner, or that is joined with one that does. Run and
// step tensors, and those that no operation touches (staging memory), live throughout.
struct Life {
  int64_t begin = -1;  // -1: never alive
  int64_t end = -1;
};

class OffsetVerifier {
 public:
  OffsetVerifier(const Program& program, std::span<const int64_t> offsets)
      : program_(program), offsets_(offsets), lives_(program.tensors.size()) {}

  std::vector<std::string> run() {
    if (offsets_.size() != program_.tensors.size()) {
      problems_.push_back(
          fmt::format("{} offsets for {} tensors", offsets_.size(), program_.tensors.size()));
      return std::move(problems_);
    }
    find_lives();
    check_placed();
    const auto steps = std::max<int64_t>(static_cast<int64_t>(program_.operations.size()), 1);
    for (int64_t step = 0; step < steps; ++step) check_step(step);
    return std::move(problems_);
  }

 private:
  const Life& life(TensorId id) const { return lives_[static_cast<size_t>(id)]; }
  int64_t begin_of(TensorId id) const { return offsets_[static_cast<size_t>(id)]; }
  int64_t end_of(TensorId id) const { return begin_of(id) + program_.tensor(id).bytes(); }

  void find_lives() {
    const auto last = static_cast<int64_t>(program_.operations.size());
    for (int64_t step = 0; step < last; ++step) {
      const auto together = done_with(program_, static_cast<size_t>(step));
      for_each_tensor(program_.operations[static_cast<size_t>(step)], [&](TensorId id) {
        Life& owner = lives_[static_cast<size_t>(program_.owner(id))];
        if (owner.begin < 0) owner.begin = static_cast<int64_t>(together.first);
        owner.end = std::max(owner.end, static_cast<int64_t>(together.last));
      });
    }
    for (size_t i = 0; i < lives_.size(); ++i) {
      const Tensor& tensor = program_.tensors[i];
      const bool always = tensor.lifetime != Lifetime::program || lives_[i].begin < 0;
      if (always && !tensor.is_view()) lives_[i] = {0, last};
    }
  }

  void check_placed() {
    for (size_t i = 0; i < lives_.size(); ++i) {
      const Tensor& tensor = program_.tensors[i];
      if (tensor.is_view() || lives_[i].begin < 0) continue;
      if (offsets_[i] < -1)
        problems_.push_back(fmt::format("'{}' is placed at {}", tensor.name, offsets_[i]));
      if (offsets_[i] == -1 && tensor.lifetime == Lifetime::program && tensor.bytes() > 0)
        problems_.push_back(fmt::format("'{}' was not placed", tensor.name));
    }
  }

  void check_step(int64_t step) {
    std::vector<TensorId> alive;
    for (size_t i = 0; i < lives_.size(); ++i) {
      const bool lives = lives_[i].begin >= 0 && lives_[i].begin <= step && step <= lives_[i].end;
      if (lives && offsets_[i] >= 0 && program_.tensors[i].bytes() > 0)
        alive.push_back(static_cast<TensorId>(i));
    }
    std::sort(alive.begin(), alive.end(),
              [&](TensorId a, TensorId b) { return begin_of(a) < begin_of(b); });
    std::vector<TensorId> open[kSpaceCount];  // those that extend beyond the current offset
    for (const TensorId id : alive) {
      auto& others = open[static_cast<size_t>(program_.tensor(id).space)];
      std::erase_if(others, [&](TensorId other) { return end_of(other) <= begin_of(id); });
      for (const TensorId other : others) check_pair(step, other, id);
      others.push_back(id);
    }
  }

  void check_pair(int64_t step, TensorId a, TensorId b) {
    if (shares_in_place(step, a, b) || shares_in_place(step, b, a)) return;
    if (!reported_.emplace(std::min(a, b), std::max(a, b)).second) return;
    problems_.push_back(fmt::format("'{}' at [{}, {}) and '{}' at [{}, {}) overlap in operation {}",
                                    program_.tensor(a).name, begin_of(a), end_of(a),
                                    program_.tensor(b).name, begin_of(b), end_of(b), step));
  }

  // Whether the operation reads all of `source` for the last time and writes `target` over it.
  bool shares_in_place(int64_t step, TensorId source, TensorId target) const {
    if (step >= static_cast<int64_t>(program_.operations.size())) return false;
    if (life(source).end != step || life(target).begin != step) return false;
    if (begin_of(source) != begin_of(target) || end_of(source) != end_of(target)) return false;
    const Operation& operation = program_.operations[static_cast<size_t>(step)];
    for (const auto& [output, input] : in_place_pairs(operation)) {
      const TensorId from = find_operand(operation, input);
      const TensorId to = find_operand(operation, output);
      if (from == kNone || to == kNone) continue;
      const bool whole = program_.tensor(from).bytes() == program_.tensor(source).bytes() &&
                         program_.tensor(to).bytes() == program_.tensor(target).bytes() &&
                         program_.tensor(from).dtype == program_.tensor(to).dtype;
      if (program_.owner(from) == source && program_.owner(to) == target && whole) return true;
    }
    return false;
  }

  const Program& program_;
  std::span<const int64_t> offsets_;
  std::vector<Life> lives_;
  std::vector<std::string> problems_;
  std::set<std::pair<TensorId, TensorId>> reported_;
};

}  // namespace

std::vector<std::string> verify_offsets(const Program& program,
                                        std::span<const int64_t> offset_of_owner) {
  return OffsetVerifier(program, offset_of_owner).run();
}

}  // namespace snug::program
