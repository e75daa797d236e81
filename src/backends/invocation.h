// An operation as a backend runs it: its attributes, its tensors with their addresses, and what is
// known of the batch. The code of a kind sees nothing else of a backend.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/trace.h"
#include "base/dtype.h"
#include "base/error.h"
#include "program/ir/program.h"
#include "program/kinds/kind.h"
#include "program/work/batch_bounds.h"
#include "program/work/extent.h"

namespace snug::backends {

// A tensor with its address. Strides count elements; a tensor that is not a view is contiguous.
struct Buffer {
  std::byte* data = nullptr;
  program::DType dtype = program::DType::f32;
  program::Shape shape;
  std::array<int64_t, program::Shape::kMaxRank> strides{};
  // The element of the whole tensor at which a rank's part begins.
  int64_t first = 0;
  // Tensor::constant of the program's tensor.
  bool is_constant = false;

  int64_t elements() const { return shape.elements(); }
  int64_t bytes() const { return elements() * base::size_of(dtype); }
  // The distance from the first byte to the end of the last, including the gaps of a view.
  int64_t spanned_bytes() const {
    if (elements() == 0) return 0;
    int64_t last = 0;
    for (int axis = 0; axis < shape.rank(); ++axis)
      last += (shape[axis] - 1) * strides[static_cast<size_t>(axis)];
    return (last + 1) * base::size_of(dtype);
  }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

// Whether the spanned bytes of the two overlap, including the gaps of views.
inline bool overlap(const Buffer& a, const Buffer& b) {
  return a.data < b.data + b.spanned_bytes() && b.data < a.data + a.spanned_bytes();
}

class Backend;
class HostCollectives;

// What a backend keeps for a prepared operation (a library's primitive, a chosen algorithm).
class Prepared {
 public:
  virtual ~Prepared() = default;
};

// One operation with its operands resolved: everything run() needs.
struct Invocation {
  const program::Attributes* attributes = nullptr;
  std::span<const Buffer> reads;
  std::span<const Buffer> writes;
  std::span<const Buffer> updates;
  Buffer workspace;  // data is null where there is none
  const Prepared* prepared = nullptr;
  program::Channel channel = program::Channel::compute;
  bool joined = false;  // runs in one launch with the operation before it in the list
  bool on_host = false;
  // The operation in its program, and the host's knowledge of the batch where the backend asked for
  // it (Backend::takes_extent).
  const program::OperationView* view = nullptr;
  const program::BatchBounds* bounds = nullptr;
  // Where the backend records what it does; null: nowhere.
  Trace* trace = nullptr;

  // Performs collectives through the host; null where the backend does not use it.
  HostCollectives* collectives = nullptr;

  // The amount of work, if the host knows it; else the most that the shapes allow. Computing beyond
  // it may be skipped where that does not change a bit of the result.
  program::Extent extent() const;

  // Records that the operation ran, over all that the shapes allow where the host does not know the
  // extent. `with_before`: in the launch of the operation before it.
  void note_run(bool with_before = false) const {
    if (trace == nullptr) return;
    ++trace->runs;
    trace->kind = attributes->kind();
    trace->joined = with_before;
    if (bounds == nullptr && program::traits_of(trace->kind).has_extent())
      trace->note_capacity(extent());
  }
  // How decisions were carried out (Trace::note_decision).
  template <auto... path>
  void note_decision(const program::PathValue<path...>& value) const {
    if (trace != nullptr) trace->note_decision<path...>(value);
  }
  // Records the number of kernels and library calls that were launched. `spared` says how many
  // fewer that is than the most a timed algorithm may take.
  void note_launches(int64_t launches, int64_t spared) const {
    if (trace == nullptr) return;
    trace->launches += launches;
    trace->launches_spared += spared;
  }
  // Records a piece of `size` rows that was done.
  void note_piece(int64_t size) const {
    if (trace != nullptr) trace->pieces.push_back(size);
  }
  // Records that another channel than `compute` was used.
  void note_channel(program::Channel used) const {
    if (trace != nullptr) trace->channel = used;
  }
  // Records the amount of work that was done.
  void note_extent(const program::Extent& done) const {
    if (trace != nullptr) trace->note_extent(done);
  }

  // The tensor of an operand, which must be present. The trace records which operands are asked for
  // here and through all().
  template <typename Struct>
  const Buffer& operator[](const program::Operand<Struct>& operand) const {
    const program::Slot slot = program::slot_of(attributes->get<Struct>(), operand);
    const Buffer& buffer = list_of(slot.access)[slot.index];
    if (trace != nullptr) trace->note_operand(bit_of(slot.access, slot.index), buffer.bytes());
    return buffer;
  }
  // All tensors with one access, of a kind whose operands are lists of tensors.
  std::span<const Buffer> all(program::Access access) const;

 private:
  // The number of operands per access that a trace distinguishes; any further ones count as the
  // last.
  static constexpr size_t kTracedOperands = 21;

  static int bit_of(program::Access access, size_t index) {
    return static_cast<int>(static_cast<size_t>(access) * kTracedOperands +
                            std::min(index, kTracedOperands - 1));
  }
  std::span<const Buffer> list_of(program::Access access) const {
    switch (access) {
      case program::Access::read:
        return reads;
      case program::Access::write:
        return writes;
      case program::Access::update:
        break;
    }
    return updates;
  }
};

inline std::span<const Buffer> Invocation::all(program::Access access) const {
  const std::span<const Buffer> buffers = list_of(access);
  if (trace == nullptr) return buffers;
  int64_t last_bytes = 0;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (i + 1 < kTracedOperands)
      trace->note_operand(bit_of(access, i), buffers[i].bytes());
    else
      last_bytes += buffers[i].bytes();
  if (buffers.size() >= kTracedOperands)
    trace->note_operand(bit_of(access, kTracedOperands - 1), last_bytes);
  return buffers;
}

inline program::Extent Invocation::extent() const {
  SNUG_CHECK(view != nullptr, "an extent of an operation that is of no program");
  return program::extent_of(*view, bounds != nullptr ? *bounds : program::BatchBounds());
}

}  // namespace snug::backends
