// The programs of a job that read, make and write tensors, whose operations the runtime performs
// (program/kinds/transfer/storage.h). They follow from the job's other programs, which say what
// there is.
//
//   load          each weight from its file, or its initial values; the rotary frequencies
//   load_adapter  the adapter's tensors likewise
//   save          what training is for: the adapter's tensors, or all weights
//   save_state    what the optimizer keeps next to them; with the former a checkpoint
//   restore       what a checkpoint puts back: that, and of what `save` writes the tensors without
//                 a master, frozen weights among them
//
// A tensor that has an f32 master is read and made there, and the program `prepare` rounds it.
//
// Values pass through staging memory, of which there are two of each, one for each of two threads:
//
//   slot    pinned: values as a file holds them, where they are converted or compared
//   stage   pinned, where the host does not reach the device: what is on its way to or from it
//   absmax  pinned: the scales of a whole weight that is quantised, where it is nested or the host
//           does not reach the device, since all are needed first, and looked at
//   values  device, where the host does not reach it: a slot's values, which are quantised there
//   scales  device, likewise: their scales, of a nested weight
//
// Where the program quantises a nested weight that is sharded, a rank has the absmax of its part
// alone, and the mean of all is needed. The operation leaves its own in a rank's part of the
// staging memory, an all_gather in place makes them those of all ranks, padding too, and
// encode_scales makes the rank's scales of them, after which the memory is free again. As many
// weights as there are slots are gathered together. The runtime performs this between the hosts of
// the ranks, whose memory it is, whatever the device.
//
//   codes, absmax.0.part = read_nf4() updates (slot.0, slot.1)
//   all_gather() updates (absmax.0.whole) {ranks 2, in_place} channel interconnect
//   await() updates (absmax.0.whole) {in_place}
//   small, nested, map, offset = encode_scales(absmax.0.whole)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/config/config.h"
#include "plan/job/job.h"
#include "plan/spec/adapter_widths.h"
#include "program/ir/program.h"

namespace snug::plan {

// Bytes of one slot.
inline constexpr int64_t kSlotBytes = 4 << 20;
inline constexpr int kSlots = 2;
// The bytes that a slot's values become: at most twice as wide. Each reader has so many stages and
// fills one while the others' copies are under way.
inline constexpr int64_t kStageBytes = 2 * kSlotBytes;
inline constexpr int kStages = 2;

// Where the weights of a job come from.
struct Origin {
  const models::ModelConfig& model;
  std::optional<int64_t> init_seed;  // initial values of this seed; nothing: files
  bool adapter_in_files = false;     // else initial values of the seed below
  AdapterWidths adapter_widths{};    // of those files
  // The rows of the model's tables that the adapter's files replace (methods/lora.h).
  std::map<std::string, std::vector<int64_t>, std::less<>> adapter_rows{};
  int64_t adapter_seed = 0;
  std::optional<methods::LossScaleOptions> loss_scale{};  // where gradients are scaled
  int32_t shards = 1;       // ranks among which weights may be sharded
  int32_t shard_nodes = 1;  // machines that those are spread over
};

// The programs that load, for a job whose other programs are made: load, and load_adapter where
// there is an adapter.
std::vector<program::Program> loading_programs(const Job& job, const Origin& origin,
                                               const program::Target& target);
// save, save_state and restore, for a job that trains.
std::vector<program::Program> saving_programs(const Job& job, const models::ModelConfig& model,
                                              const program::Target& target);

}  // namespace snug::plan
