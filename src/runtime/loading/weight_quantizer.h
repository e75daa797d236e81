// Quantises a weight piece by piece to its destination. The backend does it in its device's memory:
// values that the host reads pass through a slot of the program and, where the host cannot access
// the device's memory, through that slot's values on the device. One thread uses a quantizer; those
// of different slots may be used at once. Must not be used while a program runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "backends/device_events.h"
#include "backends/invocation.h"
#include "formats/quantization/nf4.h"
#include "runtime/execution/executor.h"
#include "runtime/loading/stored_weight.h"

namespace snug::runtime {

// A range of a weight's elements that starts at the beginning of a block.
struct WeightPiece {
  int64_t first = 0;
  int64_t elements = 0;
  int64_t first_block() const { return first / formats::kNf4BlockSize; }
  int64_t blocks() const { return formats::nf4_blocks(elements); }
};

class WeightQuantizer {
 public:
  // `slot` is a slot of the program, below plan::kSlots. The quantizer writes weights that are
  // stored as NF4.
  WeightQuantizer(Executor& executor, program::ProgramName program, int slot);

  // Where a backend may generate the values of a piece, which has at most plan::kSlotBytes.
  backends::Buffer values(base::DType dtype, const WeightPiece& piece) const;
  // Quantises these values. `gathered`, in pinned memory, has one absmax per block of the whole
  // weight; those of the piece are set when the backend's work is done. Null is for weights that
  // are not double quantised, whose absmax values go only to their destination.
  void quantize(base::DType dtype, const WeightPiece& piece, const StoredWeight& weight,
                float* gathered);
  // Quantises what the host has put into its slot, and returns when the slot is free again. Returns
  // the absmax values of the piece: in `gathered`, which may be null where the host can access the
  // device's memory.
  std::span<const float> quantize_slot(base::DType dtype, const WeightPiece& piece,
                                       const StoredWeight& weight, float* gathered);

 private:
  bool is_remote() const { return values_ != slot_; }

  backends::Backend& backend_;
  std::byte* slot_ = nullptr;    // on the host; null where all values are generated on the device
  std::byte* values_ = nullptr;  // on the device; the same as slot_ where the host can access it
  float* scales_ = nullptr;      // on the device, for a double quantised piece
  std::unique_ptr<backends::DeviceEvents> done_;
};

}  // namespace snug::runtime
