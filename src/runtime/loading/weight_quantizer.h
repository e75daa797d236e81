// Quantises a weight, piece by piece, to where it is stored. The backend does it, in its device's
// memory: what the host reads passes through a slot of the program and, where the host does not
// reach the device, through the values of that slot. One thread uses a quantizer; those of
// different slots may be used at once. Not while a program runs.
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

// Elements of a weight, from the first of a block on.
struct WeightPiece {
  int64_t first = 0;
  int64_t elements = 0;
  int64_t first_block() const { return first / formats::kNf4BlockSize; }
  int64_t blocks() const { return formats::nf4_blocks(elements); }
};

class WeightQuantizer {
 public:
  // `slot`: of the program, below plan::kSlots. It writes weights that are stored as NF4.
  WeightQuantizer(Executor& executor, program::ProgramName program, int slot);

  // Where a backend may make the values of a piece, of at most plan::kSlotBytes.
  backends::Buffer values(base::DType dtype, const WeightPiece& piece) const;
  // Quantises what is there. `gathered`, in pinned memory, holds one absmax a block of the whole
  // weight: those of the piece are in it when the backend's work is done. Null is for weights that
  // are not double quantised: theirs go to their place only.
  void quantize(base::DType dtype, const WeightPiece& piece, const StoredWeight& weight,
                float* gathered);
  // Quantises what the host has put into its slot, and returns when that is free again. Gives the
  // absmax of the piece: gathered, which may be null where the host reaches the device.
  std::span<const float> quantize_slot(base::DType dtype, const WeightPiece& piece,
                                       const StoredWeight& weight, float* gathered);

 private:
  bool is_remote() const { return values_ != slot_; }

  backends::Backend& backend_;
  std::byte* slot_ = nullptr;    // the host's; null where all values are made on the device
  std::byte* values_ = nullptr;  // the device's; the same where the host reaches it
  float* scales_ = nullptr;      // on the device, of a double quantised piece
  std::unique_ptr<backends::DeviceEvents> done_;
};

}  // namespace snug::runtime
