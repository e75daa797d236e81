// Lets an operation write its output over an input that dies there: the output becomes a view of
// the input. Where the operation reads and writes parts (the two halves of gate and up), the tensor
// that contains the written parts becomes a view as a whole.
#include <algorithm>
#include <utility>

#include "passes/lowering/lower.h"
#include "passes/uses.h"
#include "program/ir/operands.h"
#include "program/kinds/kind.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

class InPlace {
 public:
  explicit InPlace(Program program)
      : result_(std::move(program)),
        uses_(find_uses(result_)),
        last_(last_touch_of_owner(result_)) {
    views_.resize(result_.tensors.size());
    for (size_t id = 0; id < result_.tensors.size(); ++id)
      if (result_.tensors[id].is_view())
        views_[index(result_.tensors[id].view.base)].push_back(static_cast<TensorId>(id));
  }

  Program run() {
    for (size_t i = 0; i < result_.operations.size(); ++i) {
      Operation& operation = result_.operations[i];
      share_parts(static_cast<int32_t>(i), operation);
      std::vector<TensorId> taken;
      for (const auto& [output, input] : in_place_pairs(operation)) {
        // An earlier pair may have turned this addend into the output itself, so that it is no
        // longer an operand.
        const TensorId source = find_operand(operation, input);
        const TensorId target = find_operand(operation, output);
        if (source == kNone || target == kNone) continue;
        if (!may_share(static_cast<int32_t>(i), operation, source, target, taken)) continue;
        share(source, target);
        taken.push_back(result_.owner(source));
        accumulate_onto_itself(operation, source, target);
      }
    }
    return std::move(result_);
  }

 private:
  bool may_share(int32_t position, const Operation& operation, TensorId source, TensorId target,
                 const std::vector<TensorId>& taken) const {
    const Tensor& from = result_.tensor(source);
    const Tensor& to = result_.tensor(target);
    const TensorId owner = result_.owner(source);
    const Tensor& owning = result_.tensor(owner);
    if (to.is_view() || to.lifetime != Lifetime::program || to.space != owning.space) return false;
    if (owning.lifetime != Lifetime::program || uses_.writers[index(owner)].empty()) return false;
    if (from.dtype != to.dtype || from.bytes() != to.bytes() || owning.bytes() != to.bytes())
      return false;
    if (from.is_view() && from.view.strides != dense_strides(from.shape)) return false;
    if (last_[index(owner)] != position) return false;
    const bool reads_once =
        std::count_if(operation.reads.begin(), operation.reads.end(),
                      [&](TensorId id) { return result_.owner(id) == owner; }) == 1;
    return reads_once && std::find(taken.begin(), taken.end(), owner) == taken.end();
  }

  // Where every part of a tensor that the operation writes may replace the same part of a tensor
  // that dies here, the whole tensor does.
  void share_parts(int32_t position, const Operation& operation) {
    for (const auto& [output, input] : in_place_pairs(operation)) {
      const TensorId target = result_.tensor(find_operand(operation, output)).view.base;
      const TensorId source = result_.tensor(find_operand(operation, input)).view.base;
      if (target == kNone || source == kNone || target == source) continue;
      if (dies_and_is_born(position, source, target) && pairs_match(operation, source, target))
        share(source, target);
    }
  }

  bool dies_and_is_born(int32_t position, TensorId source, TensorId target) const {
    const Tensor& from = result_.tensor(source);
    const Tensor& to = result_.tensor(target);
    const auto& writers = uses_.writers[index(target)];
    const auto& readers = uses_.readers[index(target)];
    return from.lifetime == Lifetime::program && to.lifetime == Lifetime::program &&
           from.space == to.space && from.dtype == to.dtype && from.shape == to.shape &&
           !uses_.writers[index(source)].empty() && last_[index(source)] == position &&
           writers.front() == position && (readers.empty() || readers.front() > position);
  }

  // Whether the parts that the operation reads of `source` and those that it writes of `target` are
  // the same, pair by pair.
  bool pairs_match(const Operation& operation, TensorId source, TensorId target) const {
    const auto pairs = in_place_pairs(operation);
    size_t paired = 0;
    for (const TensorId written : operation.writes) {
      const Tensor& to = result_.tensor(written);
      if (result_.owner(written) != target) continue;
      const auto matches = [&](const InPlacePair& pair) {
        const Tensor& from = result_.tensor(find_operand(operation, pair.input));
        return find_operand(operation, pair.output) == written && from.view.base == source &&
               from.shape == to.shape && from.view.offset == to.view.offset &&
               from.view.strides == to.view.strides;
      };
      if (!to.is_view() || std::none_of(pairs.begin(), pairs.end(), matches)) return false;
      ++paired;
    }
    const auto reads = std::count_if(operation.reads.begin(), operation.reads.end(),
                                     [&](TensorId id) { return result_.owner(id) == source; });
    return static_cast<size_t>(reads) == paired;
  }

  void share(TensorId source, TensorId target) {
    const TensorId owner = result_.owner(source);
    Tensor& to = result_.tensor(target);
    to.view = {.base = owner, .offset = 0, .strides = dense_strides(to.shape)};
    // Both tensors are contiguous and of the same size, so that views of one are valid views of the
    // other.
    for (const TensorId view : views_[index(target)]) result_.tensor(view).view.base = owner;
    views_[index(owner)].insert(views_[index(owner)].end(), views_[index(target)].begin(),
                                views_[index(target)].end());
    views_[index(owner)].push_back(target);
    views_[index(target)].clear();
    last_[index(owner)] = std::max(last_[index(owner)], last_[index(target)]);
    // Shared bytes that hold a checkpoint are reported as one.
    if (to.role == Role::checkpoint) result_.tensor(owner).role = Role::checkpoint;
  }

  // A product with an addend that writes over the addend is an accumulation.
  static void accumulate_onto_itself(Operation& operation, TensorId source, TensorId target) {
    if (find_operand(operation, kAddendOperand) != source) return;
    Operation updating = operation;
    remove_operand(updating, kAddendOperand);
    if (update_in_place(updating, target, target)) operation = std::move(updating);
  }

  Program result_;
  Uses uses_;
  std::vector<int32_t> last_;
  std::vector<std::vector<TensorId>> views_;  // by owner of bytes
};

}  // namespace

Program share_in_place(Program program) { return InPlace(std::move(program)).run(); }

}  // namespace snug::passes
