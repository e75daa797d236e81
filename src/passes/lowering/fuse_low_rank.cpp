// A linear's product and its adapter's, added, become one: what is written and read again for the
// sake of a few columns is then the target's to avoid, or to overlap with the larger product.
#include <algorithm>
#include <optional>
#include <utility>

#include "passes/lowering/lower.h"
#include "passes/uses.h"
#include "program/kinds/product/matmul.h"
#include "program/work/target.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

// The largest inner size of the product that augments the other, which adapters' ranks do not
// exceed. Beyond it a second pass over the result costs little next to the product.
constexpr int64_t kMaxRank = 128;

// A plain product; null for one that has an augmentation already, or does not just write.
const Matmul* plain_matmul(const Operation& operation) {
  const auto* matmul = operation.attributes.get_if<Matmul>();
  const bool is_plain = matmul != nullptr && !matmul->accumulate && !matmul->augmented;
  return is_plain ? matmul : nullptr;
}

int64_t inner_size(const Program& program, const Operation& operation) {
  const bool transposed = operation.attributes.get<Matmul>().transpose_a;
  return program.tensor(id_of(operation, Matmul::kA)).shape[transposed ? 0 : 1];
}

// Whether an operation between these two changes what the first reads.
bool changes_between(const Program& program, const Uses& uses, int32_t first, int32_t second) {
  const auto& reads = program.operations[index(first)].reads;
  return std::any_of(reads.begin(), reads.end(), [&](TensorId id) {
    const auto& writers = uses.writers[index(program.owner(id))];
    return std::any_of(writers.begin(), writers.end(),
                       [&](int32_t writer) { return writer > first && writer < second; });
  });
}

// The product whose result the one at `second` adds, where nothing else reads that result.
std::optional<int32_t> producer_of_addend(const Program& program, const Uses& uses,
                                          int32_t second) {
  const Operation& operation = program.operations[index(second)];
  const Matmul* sum = plain_matmul(operation);
  if (sum == nullptr || !sum->addend) return {};
  const TensorId part = id_of(operation, Matmul::kAddend);
  if (part == id_of(operation, Matmul::kA) || part == id_of(operation, Matmul::kB)) return {};
  if (program.tensor(part).is_view()) return {};
  if (uses.readers[index(part)].size() != 1 || uses.writers[index(part)].size() != 1) return {};
  const int32_t first = uses.writers[index(part)][0];
  if (first >= second || plain_matmul(program.operations[index(first)]) == nullptr) return {};
  if (changes_between(program, uses, first, second)) return {};
  return first;
}

// Both products in one operation, in the place of the second; the one of fewer inner dimensions
// augments the other.
Operation joined(const Program& program, const Operation& first, const Operation& second) {
  const bool first_is_low = inner_size(program, first) < inner_size(program, second);
  const Operation& low = first_is_low ? first : second;
  const Operation& main = first_is_low ? second : first;
  const Matmul& low_matmul = low.attributes.get<Matmul>();
  Matmul matmul = main.attributes.get<Matmul>();
  matmul.addend = first.attributes.get<Matmul>().addend;
  matmul.augmented = true;
  matmul.low_transpose_b = low_matmul.transpose_b;
  matmul.low_alpha = low_matmul.alpha;
  Operation result = second;
  result.attributes = matmul;
  result.reads = {id_of(main, Matmul::kA), id_of(main, Matmul::kB)};
  if (matmul.addend) result.reads.push_back(id_of(first, Matmul::kAddend));
  result.reads.push_back(id_of(low, Matmul::kA));
  result.reads.push_back(id_of(low, Matmul::kB));
  return result;
}

// A model's weight, as it is stored or as its values are made of codes. Keys' and values' have few
// outputs where heads are few, but no adapter's rank.
bool is_of_model(const Program& program, const Uses& uses, TensorId factor) {
  const TensorId owner = program.owner(factor);
  if (program.tensor(owner).role == Role::weight) return true;
  const auto& writers = uses.writers[index(owner)];
  return std::any_of(writers.begin(), writers.end(), [&](int32_t writer) {
    return program.operations[index(writer)].kind() == Kind::dequantize_nf4;
  });
}

// Whether one of them is of low rank, its first factor as it is stored and its second an adapter's.
bool may_join(const Program& program, const Uses& uses, const Operation& first,
              const Operation& second) {
  const int64_t of_first = inner_size(program, first);
  const int64_t of_second = inner_size(program, second);
  const Operation& low = of_first < of_second ? first : second;
  return of_first != of_second && std::min(of_first, of_second) <= kMaxRank &&
         !low.attributes.get<Matmul>().transpose_a &&
         !is_of_model(program, uses, id_of(low, Matmul::kB));
}

}  // namespace

Program fuse_low_rank(Program program, const Target& target) {
  Program result = std::move(program);
  const Uses uses = find_uses(result);
  std::vector<bool> removed(result.operations.size(), false);
  for (size_t i = 0; i < result.operations.size(); ++i) {
    const auto second = static_cast<int32_t>(i);
    const auto first = producer_of_addend(result, uses, second);
    if (!first) continue;
    const Operation& product = result.operations[index(*first)];
    if (!may_join(result, uses, product, result.operations[i])) continue;
    const Operation both = joined(result, product, result.operations[i]);
    if (!target.runs({result, both})) continue;
    result.operations[i] = both;
    removed[index(*first)] = true;
  }
  return without(std::move(result), removed);
}

}  // namespace snug::passes
