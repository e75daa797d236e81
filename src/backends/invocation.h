// An operation as a backend runs it: its attributes, its tensors with their addresses, and what is
// known of the batch. All that the code of one kind sees of a backend.
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

// A tensor with its address. Strides count elements; a tensor that is no view is contiguous.
struct Buffer {
  std::byte* data = nullptr;
  program::DType dtype = program::DType::f32;
  program::Shape shape;
  std::array<int64_t, program::Shape::kMaxRank> strides{};
  // Where a rank's part of a tensor begins in the whole, in elements.
  int64_t first = 0;
  // As its program says (Tensor::constant).
  bool is_constant = false;

  int64_t elements() const { return shape.elements(); }
  int64_t bytes() const { return elements() * base::size_of(dtype); }
  // From the first of its bytes to the last, with the gaps of a view.
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

// Whether a byte of one lies among those of the other, the gaps of views included.
inline bool overlap(const Buffer& a, const Buffer& b) {
  return a.data < b.data + b.spanned_bytes() && b.data < a.data + a.spanned_bytes();
}

class Backend;
class HostCollectives;

// What a backend remembers of a prepared operation (a library's primitive, a chosen algorithm).
class Prepared {
 public:
  virtual ~Prepared() = default;
};

// One operation, resolved: everything run() needs.
struct Invocation {
  const program::Attributes* attributes = nullptr;
  std::span<const Buffer> reads;
  std::span<const Buffer> writes;
  std::span<const Buffer> updates;
  Buffer workspace;  // data == nullptr without one
  const Prepared* prepared = nullptr;
  program::Channel channel = program::Channel::compute;
  bool joined = false;  // done in one go with the one before it, which is the list's
  bool on_host = false;
  // The operation of the program, and what the host knows of the batch's bounds, where the backend
  // has said that it takes its extent from there (Backend::takes_extent).
  const program::OperationView* view = nullptr;
  const program::BatchBounds* bounds = nullptr;
  // Where the backend notes what it does; null: nowhere.
  Trace* trace = nullptr;

  // Connects the ranks of the job; null where the backend connects none.
  HostCollectives* collectives = nullptr;

  // How much there is to do, as the host knows it; else all that shapes allow. What would be
  // computed beyond it may be left out, where that does not change a bit of the result.
  program::Extent extent() const;

  // Notes that it is run, for all that shapes allow where the host does not say how much there is;
  // `with_before`: by the launch of the operation before it.
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
  // That the device was given so many kernels and library calls, `spared` fewer than the most that
  // what is timed may take.
  void note_launches(int64_t launches, int64_t spared) const {
    if (trace == nullptr) return;
    trace->launches += launches;
    trace->launches_spared += spared;
  }
  // A piece of so many rows, which was done.
  void note_piece(int64_t size) const {
    if (trace != nullptr) trace->pieces.push_back(size);
  }
  // Another one than compute.
  void note_channel(program::Channel used) const {
    if (trace != nullptr) trace->channel = used;
  }
  // That so much was done.
  void note_extent(const program::Extent& done) const {
    if (trace != nullptr) trace->note_extent(done);
  }

  // The tensor of an operand that is there. A trace counts what is asked for here and with all().
  template <typename Struct>
  const Buffer& operator[](const program::Operand<Struct>& operand) const {
    const program::Slot slot = program::slot_of(attributes->get<Struct>(), operand);
    const Buffer& buffer = list_of(slot.access)[slot.index];
    if (trace != nullptr) trace->note_operand(bit_of(slot.access, slot.index), buffer.bytes());
    return buffer;
  }
  // All tensors of one access, of a kind that has an operand for each of many tensors.
  std::span<const Buffer> all(program::Access access) const;

 private:
  // Operands of each access that a trace tells from each other; those after them are the last one.
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
