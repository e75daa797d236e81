// Checkpoints: OUTPUT_DIR/checkpoint-N, where N is the number of steps done.
//
//   adapter_config.json, adapter_model.safetensors   lora; or
//   config.json, model*.safetensors                  full: a model folder that loads anywhere
//   the base model's companion files
//   optimizer*.safetensors   master.X, moment1.X, moment2.X of every trainable X, exact bits
//   trainer_state.json       TrainerState, with the other files' sizes
//
// A checkpoint is written beside, synced and renamed: it is there whole or not at all. What users
// may carry away, the model or adapter, is read back and compared before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "formats/lora_config.h"
#include "models/config.h"
#include "runtime/executor.h"
#include "runtime/trainer_state.h"

namespace snug::runtime {

struct CheckpointOptions {
  std::filesystem::path output_dir;
  models::ModelSource model;                   // the base
  std::optional<formats::LoraConfig> adapter;  // absent: full training
  int64_t save_total_limit = 0;                // 0: keep all
};

// Writes OUTPUT_DIR/checkpoint-STEP and then removes the oldest complete ones beyond the limit.
// Returns its folder. Throws UserError when the disk is full or a trained weight is not finite;
// older checkpoints stay as they were.
std::filesystem::path save_checkpoint(const CheckpointOptions& options, const TrainerState& state,
                                      Executor& executor);

// Reads trainer_state.json and checks that every file it lists is there and whole. Throws UserError
// naming the file that is not.
TrainerState read_checkpoint_state(const std::filesystem::path& folder);

// Puts back masters, moments, and the trainable tensors (and the rotary frequencies): every bit as
// saved once `prepare` has run, as after loading. With an adapter the base's weights are not part
// of it: call load_weights first. Throws UserError, before anything is written, when the checkpoint
// is damaged or was made by another recipe.
TrainerState restore_checkpoint(const std::filesystem::path& folder,
                                const models::ModelConfig& config, Executor& executor);

}  // namespace snug::runtime
