// Lets an operation write over an input that dies there: the output becomes a view of the input.
#include <algorithm>
#include <variant>

#include "passes/lower.h"
#include "passes/uses.h"
#include "program/kind.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

class InPlace {
 public:
  explicit InPlace(const Program& program)
      : result_(program), uses_(find_uses(program)), last_(last_touch_of_owner(program)) {}

  Program run() {
    for (size_t i = 0; i < result_.operations.size(); ++i) {
      Operation& operation = result_.operations[i];
      std::vector<TensorId> taken;
      for (const auto& [write, read] : in_place_pairs(operation)) {
        const auto output = static_cast<size_t>(write);
        if (output >= operation.writes.size()) continue;
        const TensorId source = operation.reads[static_cast<size_t>(read)];
        const TensorId target = operation.writes[output];
        if (!may_share(static_cast<int32_t>(i), operation, source, target, taken)) continue;
        share(source, target);
        taken.push_back(result_.owner(source));
        accumulate_onto_itself(operation, source, target);
      }
    }
    return std::move(result_);
  }

 private:
  static size_t index(TensorId id) { return static_cast<size_t>(id); }

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
    if (last_[index(owner)] != position) return false;
    const bool reads_once =
        std::count_if(operation.reads.begin(), operation.reads.end(),
                      [&](TensorId id) { return result_.owner(id) == owner; }) == 1;
    return reads_once && std::find(taken.begin(), taken.end(), owner) == taken.end();
  }

  void share(TensorId source, TensorId target) {
    const TensorId owner = result_.owner(source);
    Tensor& to = result_.tensor(target);
    to.view = {.base = owner, .offset = 0, .strides = dense_strides(to.shape)};
    last_[index(owner)] = std::max(last_[index(owner)], last_[index(target)]);
    // The bytes are reported as what they are kept for.
    if (to.role == Role::checkpoint) result_.tensor(owner).role = Role::checkpoint;
  }

  // A product added to an addend in the addend's own place is an accumulation.
  static void accumulate_onto_itself(Operation& operation, TensorId source, TensorId target) {
    auto* matmul = std::get_if<Matmul>(&operation.attributes);
    if (matmul == nullptr || !matmul->addend) return;
    matmul->addend = false;
    matmul->accumulate = true;
    std::erase(operation.reads, source);
    std::erase(operation.writes, target);
    operation.updates.push_back(target);
  }

  Program result_;
  Uses uses_;
  std::vector<int32_t> last_;
};

}  // namespace

Program share_in_place(const Program& program) { return InPlace(program).run(); }

}  // namespace snug::passes
