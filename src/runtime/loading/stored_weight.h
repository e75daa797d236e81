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

// The parts of a weight stored as NF4, which program/kinds/product/nf4.h describes. The last three
// have no data when it is not double quantised.
struct StoredWeight {
  backends::Buffer codes;
  backends::Buffer absmax;
  backends::Buffer nested_absmax;
  backends::Buffer nested_map;
  backends::Buffer nested_offset;
  base::DType compute = base::DType::bf16;  // the compute type of the job
  bool is_part = false;                     // the buffers hold one rank's part of the weight
  // Host memory that receives the absmax values of a part, so that they can be gathered from all
  // ranks. If set, they go nowhere else, and the buffers of scales have no data.
  float* gathered = nullptr;
  bool nested() const { return nested_map.data != nullptr; }
  // Whether its absmax values go only to host memory.
  bool leaves_absmax() const { return nested() || gathered != nullptr; }
};

// Whether the executor stores this weight as NF4.
bool is_stored_as_nf4(const Executor& executor, const std::string& weight);
// Requires is_stored_as_nf4.
StoredWeight stored_weight(const Executor& executor, const std::string& weight);

// The type to which a weight is rounded before it is quantised. `snug quantize` and quantising
// while loading use the same rule, so that both give the same base: 16-bit types stay as they are;
// values in 32 or 64 bits are rounded to the compute type (bf16 or f32), as transformers does when
// it loads in that type.
base::DType quantised_from(base::DType in_file, base::DType compute);

// How many of a weight's elements the buffers hold: all, or one rank's part.
int64_t held_elements(const StoredWeight& weight, int64_t elements);

// Writes the scales of a double quantised weight, with the map and offset for decoding them,
// through the window. `absmax` (in host memory) has one value for each of the whole weight's
// `blocks` blocks, of which the buffers may hold a part. Does nothing for a weight that is not
// double quantised, whose absmax values are in place already. Returns the bytes that were written.
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
