#include "program/kinds/attention/attention.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const CacheWrite& write, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[CacheWrite::kX];
  const Tensor& cache = view[CacheWrite::kCache];
  rule.rank(CacheWrite::kX, 2);
  rule.index(CacheWrite::kSlots, Shape{x.shape[0]});
  rule.rank(CacheWrite::kCache, 2);
  rule.shape(CacheWrite::kCache, Shape{cache.shape[0], x.shape[1]});
  if (!write.quantized) {
    rule.same_type({CacheWrite::kX, CacheWrite::kCache});
    return rule.error();
  }
  rule.same_type({CacheWrite::kX});
  rule.type(CacheWrite::kCache, DType::u8);
  const Tensor& scales = view[CacheWrite::kScales];
  rule.rank(CacheWrite::kScales, 2);
  rule.measure(CacheWrite::kScales, Shape{scales.shape[0], cache.shape[0]});
  rule.require(scales.shape[0] > 0 && cache.shape[1] % scales.shape[0] == 0,
               "has rows that are no whole heads");
  return rule.error();
}

// Bytes: rows are read once and written once, and their scales are written.
Cost cost(const CacheWrite& write, const OperationView& view, const Extent& extent) {
  const double rows = row_bytes(view[CacheWrite::kX], extent.rows) +
                      row_bytes(view[CacheWrite::kCache], extent.rows) +
                      static_cast<double>(view[CacheWrite::kSlots].bytes());
  if (!write.quantized) return {0, rows};
  const Tensor& scales = view[CacheWrite::kScales];
  const double heads = static_cast<double>(scales.shape[0] * size_of(scales.dtype));
  // Operations for each element: the largest magnitude, the product and its rounding.
  const double elements = extent.rows * static_cast<double>(view[CacheWrite::kX].shape[1]);
  return {3.0 * elements, rows + heads * extent.rows};
}

WorkList work(const CacheWrite&, const OperationView& view, const BatchBounds& bounds) {
  const std::span<const int32_t> slots = bounds[id_of(view.operation, CacheWrite::kSlots)];
  const int64_t rows = slots.empty() ? view[CacheWrite::kX].shape[0] : rows_with_work(slots);
  return {.extent = {.rows = static_cast<double>(rows)}};
}

}  // namespace

SNUG_DEFINE_KIND(CacheWrite, .work = work);

}  // namespace snug::program
