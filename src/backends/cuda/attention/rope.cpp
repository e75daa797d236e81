#include <algorithm>

#include "backends/cuda/attention/kernels/rope.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/few_rows.h"
#include "backends/cuda/product/matrices.h"
#include "base/error.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/attention/rope.h"

namespace snug::backends::cuda {
namespace {

using program::CacheWrite;
using program::Rope;
using program::RotaryTable;

void run(const RotaryTable& rotary, const Invocation& invocation, CudaContext& context) {
  const Buffer& frequency = invocation[RotaryTable::kInverseFrequency];
  rotary_table(
      {integers_of(invocation[RotaryTable::kPositions]), floats_of(frequency),
       floats_of(invocation[RotaryTable::kTable]), invocation[RotaryTable::kPositions].elements(),
       frequency.elements(), rotary.factor, rotary.growth, rotary.period},
      context.stream.get());
}

void run(const Rope& rotation, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[Rope::kX]);
  const Matrix table = matrix_of(invocation[Rope::kTable]);
  const Matrix y = matrix_of(invocation[Rope::kY]);
  Walk walk = walk_rows({&x, &table, &y});
  const int64_t width = rotated_width(rotation);
  walk.vectors = walk.vectors && can_rotate_vectors(rotation.head_dim, width, rotation.interleaved);
  const int64_t heads = x.columns / rotation.head_dim;
  rope({walk, x.operand, y.operand, table.operand, rotation.head_dim, width, rotation.interleaved,
        rotation.rotated_heads > 0 ? rotation.rotated_heads : heads, rotation.inverse},
       context.stream.get());
}

void run_together(const Rope&, std::span<const Invocation> list, CudaContext& context) {
  run_rotations_together(list, context);
}

class Rotations {
 public:
  Rotations() { run_.vectors = true; }

  void add(const Rope& rope, const Invocation& invocation) {
    const Matrix x = matrix_of(invocation[Rope::kX]);
    const Matrix table = matrix_of(invocation[Rope::kTable]);
    const Matrix y = matrix_of(invocation[Rope::kY]);
    RotationPart& part = new_part(x, rope.head_dim);
    part.y = y.operand;
    part.width = rotated_width(rope);
    part.neighbours = rope.interleaved;
    part.rotated_heads = rope.rotated_heads > 0 ? rope.rotated_heads : x.columns / rope.head_dim;
    run_.table = table.operand;
    note_vectors(walk_rows({&x, &table, &y}), part);
  }

  // Writes to a cache the rows that an earlier rotation makes, or else its own rows, each treated
  // as one head.
  void add(const CacheWrite&, const Invocation& invocation) {
    const Matrix x = matrix_of(invocation[CacheWrite::kX]);
    const Matrix cache = matrix_of(invocation[CacheWrite::kCache]);
    RotationPart* const end = run_.parts + run_.count;
    RotationPart* part = std::find_if(run_.parts, end, [&](const RotationPart& made) {
      return made.y.data == x.operand.data && made.cache.data == nullptr;
    });
    if (part == end) part = &new_part(x, x.columns);
    part->cache = cache.operand;
    part->cache_rows = cache.rows;
    run_.slots = integers_of(invocation[CacheWrite::kSlots]);
    note_vectors(walk_rows({&x, &cache}), *part);
  }

  const RotationsRun& run() const { return run_; }

 private:
  RotationPart& new_part(const Matrix& x, int64_t head_dim) {
    SNUG_CHECK(run_.count < kRotationParts, "more than {} rotations in a launch", kRotationParts);
    run_.rows = x.rows;
    RotationPart& part = run_.parts[run_.count++];
    part.x = x.operand;
    part.columns = x.columns;
    part.head_dim = head_dim;
    part.width = head_dim;
    return part;
  }

  void note_vectors(const Walk& walk, const RotationPart& part) {
    run_.vectors = run_.vectors && walk.vectors &&
                   can_rotate_vectors(part.head_dim, part.width, part.neighbours);
  }

  RotationsRun run_;
};

}  // namespace

void run_rotations_together(std::span<const Invocation> list, CudaContext& context) {
  Rotations rotations;
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].note_run(i > 0);
    if (const auto* rope = list[i].attributes->get_if<Rope>())
      rotations.add(*rope, list[i]);
    else
      rotations.add(list[i].attributes->get<CacheWrite>(), list[i]);
  }
  rotate_and_cache(rotations.run(), context.stream.get());
}

SNUG_CUDA_KIND(RotaryTable);
SNUG_CUDA_KIND(Rope, .run_together = run_together);

}  // namespace snug::backends::cuda
