#include "backends/cuda/rotations.h"

#include <algorithm>
#include <variant>

#include "backends/cuda/kernels/rope.h"
#include "backends/cuda/matrices.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

using program::CacheWrite;
using program::Rope;

class Rotations {
 public:
  Rotations() { run_.vectors = true; }

  void add(const Rope& rope, const Invocation& invocation) {
    const Matrix x = matrix_of(invocation[Rope::kX]);
    const Matrix table = matrix_of(invocation[Rope::kTable]);
    const Matrix y = matrix_of(invocation[Rope::kY]);
    RotationPart& part = new_part(x, rope.head_dim);
    part.y = y.operand;
    part.turned_heads = rope.turned_heads > 0 ? rope.turned_heads : x.columns / rope.head_dim;
    run_.table = table.operand;
    note_vectors(walk_rows({&x, &table, &y}), rope.head_dim);
  }

  // Its rows are those that a rotation before it makes, or one head of their own.
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
    note_vectors(walk_rows({&x, &cache}), part->head_dim);
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
    return part;
  }

  void note_vectors(const Walk& walk, int64_t head_dim) {
    run_.vectors = run_.vectors && walk.vectors && head_dim / 2 % kVectorElements == 0;
  }

  RotationsRun run_;
};

}  // namespace

void run_rotations_together(std::span<const Invocation> list, CudaContext& context) {
  Rotations rotations;
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].note_run(i > 0);
    if (const auto* rope = std::get_if<Rope>(list[i].attributes))
      rotations.add(*rope, list[i]);
    else
      rotations.add(std::get<CacheWrite>(*list[i].attributes), list[i]);
  }
  rotate_and_cache(rotations.run(), context.stream.get());
}

}  // namespace snug::backends::cuda
