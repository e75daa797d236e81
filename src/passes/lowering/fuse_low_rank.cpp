// Joins a linear's product with its adapter's product and their sum into one operation, so that the
// target need not write and read back the result for the sake of a low-rank update, or can overlap
// the update with the larger product.
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

// The largest inner size of the augmenting product; adapters' ranks are smaller. Beyond it, a
// second pass over the result costs little compared with the product itself.
constexpr int64_t kMaxRank = 128;

// The attributes of a plain product; null for one that already has an augmentation, or that does
// more than write its result.
const Matmul* plain_matmul(const Operation& operation) {
  const auto* matmul = operation.attributes.get_if<Matmul>();
  const bool is_plain = matmul != nullptr && !matmul->accumulate && !matmul->augmented;
  return is_plain ? matmul : nullptr;
}

int64_t inner_size(const Program& program, const Operation& operation) {
  const bool transposed = operation.attributes.get<Matmul>().transpose_a;
  return program.tensor(id_of(operation, Matmul::kA)).shape[transposed ? 0 : 1];
}

// Whether an operation between these two changes an operand of the first.
bool changes_between(const Program& program, const Uses& uses, int32_t first, int32_t second) {
  const auto& reads = program.operations[index(first)].reads;
  return std::any_of(reads.begin(), reads.end(), [&](TensorId id) {
    const auto& writers = uses.writers[index(program.owner(id))];
    return std::any_of(writers.begin(), writers.end(),
                       [&](int32_t writer) { return writer > first && writer < second; });
  });
}

// The product whose result the product at `second` adds, if nothing else reads that result.
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

// Joins both products into one operation at the second's place; the one with the smaller inner size
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

// Whether the factor is a model's weight, stored or dequantised. A small inner size alone does not
// show that a product is an adapter's: the projections of keys and values have few outputs in a
// model with few heads.
bool is_of_model(const Program& program, const Uses& uses, TensorId factor) {
  const TensorId owner = program.owner(factor);
  if (program.tensor(owner).role == Role::weight) return true;
  const auto& writers = uses.writers[index(owner)];
  return std::any_of(writers.begin(), writers.end(), [&](int32_t writer) {
    return program.operations[index(writer)].kind() == Kind::dequantize_nf4;
  });
}

// Whether one product is a low-rank update of the other: it has the smaller inner size, at most
// kMaxRank, its first factor is not transposed, and its second factor is not a model's weight.
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
