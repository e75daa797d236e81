// A weight of the base model as the executor stores it: one tensor of values, or NF4 codes and
// their scales; and how it is quantised to there, piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backends/device_events.h"
#include "backends/invocation.h"
#include "formats/quantization/nf4.h"
#include "runtime/execution/executor.h"
#include "runtime/storage/host_window.h"

namespace snug::runtime {

// The parts of a weight stored as NF4; what they are is written in program/kinds/product/nf4.h. The
// last three have no data when it is not double quantised.
struct StoredWeight {
  backends::Buffer codes;
  backends::Buffer absmax;
  backends::Buffer nested_absmax;
  backends::Buffer nested_map;
  backends::Buffer nested_offset;
  base::DType compute = base::DType::bf16;  // of the job
  bool is_part = false;                     // of what is sharded: the buffers are a rank's
  // Memory of the host where the absmax of a part are left to be gathered from all ranks; then they
  // go nowhere else. None of the buffers of scales has data then.
  float* gathered = nullptr;
  bool nested() const { return nested_map.data != nullptr; }
  // Whether its absmax go to memory of the host alone.
  bool leaves_absmax() const { return nested() || gathered != nullptr; }
};

// Whether the executor stores this weight as NF4.
bool is_stored_as_nf4(const Executor& executor, const std::string& weight);
// Requires is_stored_as_nf4.
StoredWeight stored_weight(const Executor& executor, const std::string& weight);

// What a weight is rounded to before it is quantised, so that one base comes of `snug quantize` and
// of quantising while reading: 16-bit types stay as they are, what a file holds in 32 or 64 bits
// becomes the compute type (bf16 or f32), as transformers does that loads in it.
base::DType quantised_from(base::DType in_file, base::DType compute);

// How many of a weight's elements the buffers hold: all, or a rank's part.
int64_t held_elements(const StoredWeight& weight, int64_t elements);

// Writes the scales of a double quantised weight, and the map and offset they are read with,
// through the window. `absmax` (in memory of the host) has those of the whole weight, of so many
// blocks, of which the buffers may be a part. A weight that is not double quantised has its absmax
// in place already. Gives the bytes that were written.
int64_t store_scales(const float* absmax, int64_t blocks, const StoredWeight& weight,
                     HostWindow& window);

// Elements of a weight, from the first of a block on.
struct WeightPiece {
  int64_t first = 0;
  int64_t elements = 0;
  int64_t first_block() const { return first / formats::kNf4BlockSize; }
  int64_t blocks() const { return formats::nf4_blocks(elements); }
};

// The backend quantises, in its device's memory: what the host reads passes through a slot of the
// program and, where the host does not reach the device, through the values of that slot. One
// thread uses a quantizer; those of different slots may be used at once. Not while a program runs.
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
