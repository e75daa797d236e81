// The storage programs of a job, which read, initialise and write tensors. Their operations are
// performed by the runtime (program/kinds/transfer/storage.h). They are derived from the job's
// other programs, which determine the tensors.
//
//   load          each weight from its file, or its initial values; the rotary frequencies
//   load_adapter  the adapter's tensors likewise
//   save          the result of training: the adapter's tensors, or all weights
//   save_state    the optimizer's state; a checkpoint is the output of save and save_state
//   restore       what a checkpoint restores: the optimizer's state, and those tensors written by
//                 `save` that have no master, frozen weights included
//
// A tensor with an f32 master is read or initialised in the master, and the program `prepare`
// rounds it.
//
// Values pass through staging memory, which exists twice, once for each of two threads:
//
//   slot    pinned: values as in the file, to be converted or compared
//   stage   pinned, where the host cannot access the device: values on their way to or from it
//   absmax  pinned: the scales of a whole quantised weight, where they are quantised too or the
//           host cannot access the device, since all must be computed and checked first
//   values  device, where the host cannot access it: a slot's values, to be quantised there
//   scales  device, likewise: the scales of these values, if they are quantised too
//
// Quantising the scales of a double-quantised weight needs the mean of all its absmax. If the
// weight is sharded, each rank has only the absmax of its part. The operation leaves these in the
// rank's part of the staging memory, an all_gather in place collects those of all ranks, padding
// included, and encode_scales computes the rank's scales from them, after which the memory is free
// again. As many weights as there are slots are gathered together. The runtime gathers in host
// memory, whatever the device.
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

#include "methods/method.h"
#include "models/config/config.h"
#include "plan/job/job.h"
#include "plan/spec/adapter_widths.h"
#include "program/ir/program.h"

namespace snug::plan {

// Bytes of one slot.
inline constexpr int64_t kSlotBytes = 4 << 20;
inline constexpr int kSlots = 2;
// The bytes that a slot's values may become after conversion, which at most doubles their width.
// Each reader has kStages stages, and fills one while the others are being copied.
inline constexpr int64_t kStageBytes = 2 * kSlotBytes;
inline constexpr int kStages = 2;

// Where a job's initial values come from.
struct Origin {
  const models::ModelConfig& model;
  std::optional<int64_t> init_seed;  // seed of random weights; nothing: weights are read from files
  bool adapter_in_files = false;     // otherwise initialised as adapter_start says
  AdapterWidths adapter_widths{};    // of those files
  // The rows that the adapter's files replace in the model's tables (methods/lora.h).
  std::map<std::string, std::vector<int64_t>, std::less<>> adapter_rows{};
  methods::AdapterStart adapter_start{};
  bool has_slots = false;  // the adapter's tensors are slots, which begin empty
  std::optional<methods::LossScaleOptions> loss_scale{};  // set where gradients are scaled
  int32_t shards = 1;                                     // ranks over which weights may be sharded
  int32_t shard_nodes = 1;  // machines over which these ranks are spread
};

// The loading programs for a job whose other programs exist: load, and load_adapter if there is an
// adapter.
std::vector<program::Program> loading_programs(const Job& job, const Origin& origin,
                                               const program::Target& target);
// The programs save, save_state and restore, for a job that trains.
std::vector<program::Program> saving_programs(const Job& job, const models::ModelConfig& model,
                                              const program::Target& target);

}  // namespace snug::plan
