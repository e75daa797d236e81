#include "program/kinds/transfer/transfer.h"

#include "program/kinds/functions.h"
#include "program/kinds/rate_names.h"
#include "program/kinds/shape_rule.h"

namespace snug::program {
namespace {

bool is_dense(const Tensor& tensor) {
  return !tensor.is_view() || tensor.view.strides == dense_strides(tensor.shape);
}

// Checks the source and the destination of a transfer.
template <typename Struct>
void check_ends(ShapeRule& rule, const Struct&, const OperationView& view) {
  const Tensor& x = view[Struct::kX];
  const Tensor& y = view[Struct::kY];
  rule.shape(Struct::kY, x.shape);
  rule.type(Struct::kY, x.dtype);
  rule.require(x.space != y.space, "copies within one space");
  rule.require(x.space != Space::host && y.space != Space::host,
               "reaches host memory that is not pinned");
  rule.require(is_dense(x) && is_dense(y), "copies a view that is not dense");
}

RateKey link_key(const OperationView& view, const Cost& cost) {
  RateKey key = key_of_bytes(view, cost);
  key.unit = Work::link_bytes;
  return key;
}

std::string shape_error(const Copy& copy, const OperationView& view) {
  ShapeRule rule(view);
  check_ends(rule, copy, view);
  return rule.error();
}

std::string shape_error(const Transfer& transfer, const OperationView& view) {
  ShapeRule rule(view);
  const Channel channel = view.operation.channel;
  const bool to_device = view[Transfer::kY].space == Space::device;
  rule.require(channel == Channel::compute ||
                   channel == (to_device ? Channel::host_to_device : Channel::device_to_host),
               "copies against the direction of its channel");
  check_ends(rule, transfer, view);
  return rule.error();
}

// The operands are checked where the transfer begins; the verifier matches the two.
std::string shape_error(const Await& await, const OperationView& view) {
  ShapeRule rule(view);
  const Operation& operation = view.operation;
  rule.require(await.in_place || operation.reads.size() == operation.updates.size(),
               "has not as many ends as beginnings");
  return rule.error();
}

// The bytes that cross the link, counted once.
Cost cost(const Copy&, const OperationView& view, const Extent&) {
  return {.flops = 0, .bytes = static_cast<double>(view[Copy::kX].bytes())};
}
Cost cost(const Transfer&, const OperationView& view, const Extent&) {
  return {.flops = 0, .bytes = static_cast<double>(view[Transfer::kX].bytes())};
}

Cost cost(const Await&, const OperationView&, const Extent&) { return {}; }

RateKey rate_key(const Copy& copy, const OperationView& view, const Extent& extent) {
  return link_key(view, cost(copy, view, extent));
}
RateKey rate_key(const Transfer& transfer, const OperationView& view, const Extent& extent) {
  return link_key(view, cost(transfer, view, extent));
}

}  // namespace

SNUG_DEFINE_KIND(Copy, .rate_key = rate_key);
SNUG_DEFINE_KIND(Transfer, .rate_key = rate_key);
SNUG_DEFINE_KIND(Await);

}  // namespace snug::program
