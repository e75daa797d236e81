#include "program/kinds/attention/attention.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const CacheWrite&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[CacheWrite::kX];
  const Tensor& cache = view[CacheWrite::kCache];
  rule.rank(CacheWrite::kX, 2);
  rule.index(CacheWrite::kSlots, Shape{x.shape[0]});
  rule.rank(CacheWrite::kCache, 2);
  rule.shape(CacheWrite::kCache, Shape{cache.shape[0], x.shape[1]});
  rule.same_type({CacheWrite::kX, CacheWrite::kCache});
  return rule.error();
}

// Bytes: rows are read once and written once.
Cost cost(const CacheWrite&, const OperationView& view, const Extent& extent) {
  return {0, 2.0 * row_bytes(view[CacheWrite::kX], extent.rows) +
                 static_cast<double>(view[CacheWrite::kSlots].bytes())};
}

WorkList work(const CacheWrite&, const OperationView& view, const BatchBounds& bounds) {
  const std::span<const int32_t> slots = bounds[id_of(view.operation, CacheWrite::kSlots)];
  const int64_t rows = slots.empty() ? view[CacheWrite::kX].shape[0] : rows_with_work(slots);
  return {.extent = {.rows = static_cast<double>(rows)}};
}

}  // namespace

SNUG_DEFINE_KIND(CacheWrite, .work = work);

}  // namespace snug::program
