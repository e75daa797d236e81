// Collectives. A single rank copies, element by element, in the type that it computes in.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/host_collectives.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/transfer/collective.h"
#include "program/kinds/transfer/collective_pieces.h"

namespace snug::backends::reference {
namespace {

using program::Access;
using program::AllGather;
using program::AllReduce;
using program::ReduceScatter;

// The value after rounding to the type that is sent.
template <typename T>
T sent(T value, bool in_bf16) {
  return in_bf16 ? static_cast<T>(base::to_float(base::to_bfloat16(static_cast<float>(value))))
                 : value;
}

template <typename>
void run_alone(const AllGather& gather, const Invocation& invocation) {
  if (gather.in_place) return;
  const std::span<const Buffer> shards = invocation.all(Access::read);
  const std::span<const Buffer> wholes = invocation.all(Access::write);
  for (size_t i = 0; i < shards.size(); ++i)
    std::memcpy(wholes[i].data, shards[i].data, static_cast<size_t>(shards[i].bytes()));
}

// The number of a rank's elements without padding.
int64_t valid_elements(const program::OperationView& view, program::TensorId shard) {
  const program::Tensor& tensor = view.program.tensor(shard);
  const int64_t elements = tensor.shape.elements();
  return tensor.whole ? std::min(elements, tensor.whole->elements()) : elements;
}

template <typename T>
void run_alone(const ReduceScatter& reduce, const Invocation& invocation) {
  const std::span<const Buffer> wholes =
      invocation.all(reduce.in_place ? Access::update : Access::read);
  const std::span<const Buffer> shards =
      invocation.all(reduce.in_place || reduce.accumulate ? Access::update : Access::write);
  const program::Operation& operation = invocation.view->operation;
  const std::vector<program::TensorId>& shard_ids =
      reduce.in_place || reduce.accumulate ? operation.updates : operation.writes;
  for (size_t i = 0; i < wholes.size(); ++i) {
    const Floats<T> whole(wholes[i]);
    const Floats<T> shard(shards[i]);
    const int64_t valid = valid_elements(*invocation.view, shard_ids[i]);
    for (int64_t k = 0; k < valid; ++k)
      shard.set(k, sent(whole[k], reduce.sent_bf16) + (reduce.accumulate ? shard[k] : T{0}));
    for (int64_t k = valid; k < shard.count(); ++k) shard.set(k, T{0});
  }
}

template <typename T>
void run_alone(const AllReduce& reduce, const Invocation& invocation) {
  for (const Buffer& buffer : invocation.all(Access::update)) {
    const Floats<T> values(buffer);
    for (int64_t k = 0; k < values.count(); ++k) values.set(k, sent(values[k], reduce.sent_bf16));
  }
}

template <typename Struct>
concept Collective = (program::traits_of<Struct>().category == program::Category::collective);

template <typename T, Collective Struct>
void run(const Struct& collective, const Invocation& invocation) {
  if (collective.ranks > 1) return invocation.collectives->begin(collective, invocation);
  invocation.note_channel(program::Channel::interconnect);
  run_alone<T>(collective, invocation);
}

// Scratch in units of four bytes.
template <program::SumOverRanks Struct>
int64_t scratch_elements(const Struct& sum, const program::OperationView& view) {
  return program::scratch_bytes(sum, view) / int64_t{sizeof(float)};
}

}  // namespace

SNUG_REFERENCE_KIND(AllGather);
SNUG_REFERENCE_KIND(ReduceScatter, .scratch_elements = scratch_elements);
SNUG_REFERENCE_KIND(AllReduce, .scratch_elements = scratch_elements);

}  // namespace snug::backends::reference
