#include "program/kinds/transfer.h"

#include "program/kinds/overloads.h"
#include "program/kinds/shape_rule.h"

namespace snug::program {
namespace {

bool is_dense(const Tensor& tensor) {
  return !tensor.is_view() || tensor.view.strides == dense_strides(tensor.shape);
}

// Of the two ends of a transfer.
void check_ends(ShapeRule& rule, const Tensor& x, const Tensor& y) {
  rule.shape({"y", y}, x.shape);
  rule.type({"y", y}, x.dtype);
  rule.require(x.space != y.space, "copies within one space");
  rule.require(x.space != Space::host && y.space != Space::host,
               "reaches host memory that is not pinned");
  rule.require(is_dense(x) && is_dense(y), "copies a view that is not dense");
}

}  // namespace

std::string shape_error(const Transfer&, const OperationView& view) {
  ShapeRule rule(view);
  if (rule.counts(1, 1)) check_ends(rule, view.read(0), view.write(0));
  return rule.error();
}

std::string shape_error(const Await&, const OperationView& view) {
  ShapeRule rule(view);
  if (rule.counts(1, 0, 1)) check_ends(rule, view.read(0), view.update(0));
  return rule.error();
}

// What crosses the link, once.
Cost cost(const Transfer&, const OperationView& view, const Load&) {
  return {.flops = 0, .bytes = static_cast<double>(view.read(0).bytes())};
}

Cost cost(const Await&, const OperationView&, const Load&) { return {}; }

}  // namespace snug::program
