#include "program/kinds/transfer/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "program/kinds/functions.h"
#include "program/kinds/product/nf4.h"
#include "program/kinds/product/nf4_operands.h"
#include "program/kinds/rate_names.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

bool is_loadable(DType type) { return base::is_float(type) || type == DType::u8; }

// A tensor that is sharded over ranks is stored flat; a padded one has room for all ranks' parts.
template <typename Struct>
void check_part(ShapeRule& rule, const OperationView& view, const Operand<Struct>& operand) {
  const Tensor& tensor = view[operand];
  if (!tensor.is_sharded()) return;
  const int64_t elements = tensor.shape.elements();
  const bool fits = tensor.rank_step > 0 ? tensor.rank_step == elements
                                         : elements >= whole_shape(tensor).elements();
  rule.require(
      tensor.shape.rank() == 1 && fits,
      fmt::format("{} is no part of {}", operand.name.text, to_string(whole_shape(tensor))));
}

// Checks a tensor that is read from or written to a file: it may be a rank's part, in any memory
// space.
template <typename Struct>
void check_tensor(ShapeRule& rule, const Struct&, const OperationView& view) {
  const Tensor& tensor = view[Struct::kTensor];
  rule.require(is_loadable(tensor.dtype), "tensor is neither of floats nor of u8");
  rule.require(!tensor.is_view() && tensor.space != Space::host,
               "tensor is not a whole one of the device or of pinned host memory");
  check_part(rule, view, Struct::kTensor);
}

void check_staging(ShapeRule& rule, const OperationView& view) {
  for (const TensorId id : view.operation.updates)
    rule.require(view.program.tensor(id).role == Role::staging, "staging is not of role staging");
}

void check_channel(ShapeRule& rule, const OperationView& view, Channel channel) {
  rule.require(view.operation.channel == channel,
               channel == Channel::storage ? "reaches files on another channel than storage"
                                           : "reaches no file, but runs on channel storage");
}

// The number of elements of a stored weight; an odd number is rounded up to an even one.
template <typename Struct>
int64_t stored_elements(const OperationView& view) {
  return view[Struct::kCodes].shape.elements() * 2;
}

// Whether the operation leaves absmax in staging memory, to be gathered with those of other ranks.
template <typename Struct>
bool leaves_part(const OperationView& view) {
  return view[Struct::kAbsmax].role == Role::staging;
}

// Checks that a rank's part of a stored weight consists of whole blocks and whole blocks of scales.
template <typename Struct>
void check_stored_part(ShapeRule& rule, const Struct& attributes, const OperationView& view) {
  const auto check = [&](const Operand<Struct>& operand, DType type, int64_t elements) {
    rule.type(operand, type);
    rule.shape(operand, Shape{elements});
    rule.require(view[operand].is_sharded(),
                 fmt::format("{} is whole, and codes are sharded", operand.name.text));
    check_part(rule, view, operand);
  };
  const int64_t elements = stored_elements<Struct>(view);
  check(Struct::kCodes, DType::u8, elements / 2);
  rule.require(elements % kNf4BlockSize == 0, "a block lies on two ranks");
  if (leaves_part<Struct>(view)) {
    rule.type(Struct::kAbsmax, DType::f32);
    rule.shape(Struct::kAbsmax, Shape{elements / kNf4BlockSize});
    return;
  }
  check(Struct::kAbsmax, attributes.nested ? DType::u8 : DType::f32, elements / kNf4BlockSize);
  if (!attributes.nested) return;
  check(Struct::kNestedAbsmax, DType::f32, nf4_nested_blocks(elements));
  rule.require(elements % (kNf4BlockSize * formats::kNestedBlockSize) == 0,
               "a block of scales lies on two ranks");
  rule.measure(Struct::kNestedMap, Shape{kNf4MapSize});
  rule.measure(Struct::kNestedOffset, Shape{1});
}

// Quantising scales to 8 bits needs the mean of all absmax of a weight. So an operation that makes
// only a rank's part of these leaves them to be gathered, and does not encode them. `encodes`: the
// operation encodes the scales itself.
template <typename Struct>
void check_absmax(ShapeRule& rule, bool encodes, const OperationView& view) {
  const bool is_part = view[Struct::kCodes].is_sharded();
  rule.require(!encodes || !is_part, "encodes scales of a rank's part, which takes those of all");
  rule.require(!leaves_part<Struct>(view) || (is_part && view[Struct::kAbsmax].view.rank_step > 0),
               "leaves scales in staging that are no rank's part");
}

template <typename Struct>
void check_stored(ShapeRule& rule, const Struct& attributes, const OperationView& view) {
  if (view[Struct::kCodes].is_sharded()) return check_stored_part(rule, attributes, view);
  rule.rank(Struct::kCodes, 2);
  check_stored_weight(rule, attributes, stored_elements<Struct>(view));
}

std::string shape_error(const Read& read, const OperationView& view) {
  ShapeRule rule(view);
  check_tensor(rule, read, view);
  rule.require(read.file_width > 0 && read.file_width <= 8, "no type is of that file_width");
  check_staging(rule, view);
  check_channel(rule, view, Channel::storage);
  return rule.error();
}

std::string shape_error(const ReadNf4& read, const OperationView& view) {
  ShapeRule rule(view);
  check_stored(rule, read, view);
  rule.require(read.stored ? read.file_width == 0 : read.file_width > 0 && read.file_width <= 8,
               "no type is of that file_width");
  check_staging(rule, view);
  check_absmax<ReadNf4>(rule, read.nested && !read.stored, view);
  check_channel(rule, view, Channel::storage);
  return rule.error();
}

std::string shape_error(const Fill& fill, const OperationView& view) {
  ShapeRule rule(view);
  rule.mixed_types({Fill::kTensor});
  check_tensor(rule, fill, view);
  check_channel(rule, view, Channel::compute);
  return rule.error();
}

std::string shape_error(const FillNf4& fill, const OperationView& view) {
  ShapeRule rule(view);
  check_stored(rule, fill, view);
  check_staging(rule, view);
  check_absmax<FillNf4>(rule, fill.nested, view);
  check_channel(rule, view, Channel::compute);
  return rule.error();
}

std::string shape_error(const EncodeScales&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& gathered = view[EncodeScales::kGathered];
  const Tensor& absmax = view[EncodeScales::kAbsmax];
  const int64_t blocks = absmax.shape.elements();
  rule.require(gathered.role == Role::staging && gathered.space != Space::device,
               "reads scales that are not in staging memory of the host");
  rule.type(EncodeScales::kGathered, DType::f32);
  rule.require(gathered.shape.elements() >= whole_shape(absmax).elements(),
               "has not the scales of the whole weight");
  rule.type(EncodeScales::kAbsmax, DType::u8);
  rule.shape(EncodeScales::kAbsmax, Shape{blocks});
  check_part(rule, view, EncodeScales::kAbsmax);
  rule.type(EncodeScales::kNestedAbsmax, DType::f32);
  rule.shape(EncodeScales::kNestedAbsmax, Shape{nf4_nested_blocks(blocks * kNf4BlockSize)});
  check_part(rule, view, EncodeScales::kNestedAbsmax);
  rule.require(!absmax.is_sharded() || blocks % formats::kNestedBlockSize == 0,
               "a block of scales lies on two ranks");
  rule.measure(EncodeScales::kNestedMap, Shape{kNf4MapSize});
  rule.measure(EncodeScales::kNestedOffset, Shape{1});
  check_staging(rule, view);
  check_channel(rule, view, Channel::compute);
  return rule.error();
}

std::string shape_error(const Put& put, const OperationView& view) {
  ShapeRule rule(view);
  rule.type(Put::kTensor, DType::f32);
  check_tensor(rule, put, view);
  check_channel(rule, view, Channel::compute);
  return rule.error();
}

std::string shape_error(const PutBounds& put, const OperationView& view) {
  ShapeRule rule(view);
  rule.index(PutBounds::kTensor, Shape{1, 2});
  const Tensor& tensor = view[PutBounds::kTensor];
  rule.require(hold_all_rows(tensor) && !tensor.is_view() && tensor.space == Space::device,
               "tensor is not a whole one of the device that lasts for the run");
  rule.require(put.rows >= 0 && put.rows <= std::numeric_limits<int32_t>::max(),
               "rows are not counted in 32 bits");
  check_channel(rule, view, Channel::compute);
  return rule.error();
}

std::string shape_error(const Write& write, const OperationView& view) {
  ShapeRule rule(view);
  check_tensor(rule, write, view);
  check_staging(rule, view);
  check_channel(rule, view, Channel::storage);
  return rule.error();
}

double written_bytes(const OperationView& view) {
  int64_t bytes = 0;
  for (const TensorId id : view.operation.writes) bytes += view.program.tensor(id).bytes();
  return static_cast<double>(bytes);
}

// The number of a rank's elements that are in a file, which does not include padding.
int64_t file_elements(const Tensor& tensor) {
  return std::min(tensor.shape.elements(), whole_shape(tensor).elements());
}

// The bytes of the file; conversion and quantisation overlap with reading.
Cost cost(const Read& read, const OperationView& view, const Extent&) {
  const Tensor& tensor = view[Read::kTensor];
  return {.flops = 0,
          .bytes = static_cast<double>(file_elements(tensor) * read.file_width),
          .launches = 0};
}
Cost cost(const ReadNf4& read, const OperationView& view, const Extent&) {
  const auto values = static_cast<double>(stored_elements<ReadNf4>(view) * read.file_width);
  return {.flops = 0, .bytes = read.stored ? written_bytes(view) : values, .launches = 0};
}
Cost cost(const Write& write, const OperationView& view, const Extent&) {
  const Tensor& tensor = view[Write::kTensor];
  const auto bytes = static_cast<double>(file_elements(tensor) * base::size_of(tensor.dtype));
  return {.flops = 0, .bytes = write.read_back ? 2 * bytes : bytes, .launches = 0};
}

Cost cost(const Fill&, const OperationView& view, const Extent&) {
  return {.flops = 0, .bytes = written_bytes(view)};
}
// The values are written and read once, in the type from which they are quantised.
Cost cost(const FillNf4&, const OperationView& view, const Extent&) {
  constexpr double kValueBytes = 2;
  const auto elements = static_cast<double>(stored_elements<FillNf4>(view));
  return {.flops = 0, .bytes = written_bytes(view) + 2 * kValueBytes * elements};
}
Cost cost(const EncodeScales&, const OperationView& view, const Extent&) {
  const auto gathered = static_cast<double>(view[EncodeScales::kGathered].bytes());
  return {.flops = 0, .bytes = gathered + written_bytes(view), .launches = 0};
}
Cost cost(const Put&, const OperationView& view, const Extent&) {
  return {.flops = 0, .bytes = written_bytes(view)};
}
Cost cost(const PutBounds&, const OperationView& view, const Extent&) {
  return {.flops = 0, .bytes = written_bytes(view)};
}

// All kinds of reading share a rate, and all kinds of writing.
RateKey storage_key(const char* kind, const Cost& cost) {
  return {
      .form = {.kind = kind}, .shape = {std::max(1.0, cost.bytes)}, .unit = Work::storage_bytes};
}
RateKey rate_key(const Read& read, const OperationView& view, const Extent& extent) {
  return storage_key("storage read", cost(read, view, extent));
}
RateKey rate_key(const ReadNf4& read, const OperationView& view, const Extent& extent) {
  return storage_key("storage read", cost(read, view, extent));
}
// It works in host memory, whatever the device.
RateKey rate_key(const EncodeScales& encode, const OperationView& view, const Extent& extent) {
  RateKey key = key_of_bytes(view, cost(encode, view, extent));
  key.unit = Work::host_bytes;
  return key;
}
RateKey rate_key(const Write& write, const OperationView& view, const Extent& extent) {
  return storage_key("storage write", cost(write, view, extent));
}

}  // namespace

SNUG_DEFINE_KIND(Read, .rate_key = rate_key);
SNUG_DEFINE_KIND(ReadNf4, .rate_key = rate_key);
SNUG_DEFINE_KIND(Fill);
SNUG_DEFINE_KIND(FillNf4);
SNUG_DEFINE_KIND(EncodeScales, .rate_key = rate_key);
SNUG_DEFINE_KIND(Put);
SNUG_DEFINE_KIND(PutBounds);
SNUG_DEFINE_KIND(Write, .rate_key = rate_key);

}  // namespace snug::program
