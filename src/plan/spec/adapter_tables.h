// The embedding and head tables that an adapter's files bring to a model, interpreted as in PEFT:
// tables that train whole (modules_to_save), tables that PEFT saves next to the adapter
// (save_embedding_layers), and rows of single tokens (trainable_token_indices). A tied head becomes
// a tensor of its own where only one of the two tables is replaced, or both are replaced
// separately. If the vocabulary was resized, it is that of the tables.
#pragma once

#include <filesystem>

#include "formats/adapter/lora_config.h"
#include "methods/lora.h"
#include "models/config/config.h"

namespace snug::plan {

// Prints a note about tensors of the adapter's files that are left out, if there are any.
void say_left_out(const std::filesystem::path& adapter,
                  formats::OtherParts others = formats::OtherParts::left_out);

// The model with these tables, or the unchanged model if the adapter has none. Opens the adapter's
// files. Throws UserError for tensors that belong to no weight of the model, and for tables that
// contradict each other.
models::ModelConfig with_adapter_tables(const models::ModelConfig& model,
                                        const std::filesystem::path& adapter,
                                        formats::OtherParts others = formats::OtherParts::left_out);

// Adds to `options` what applying the adapter does to the model's tables.
void add_adapter_tables(const models::ModelConfig& model, const std::filesystem::path& adapter,
                        methods::LoraOptions& options);

}  // namespace snug::plan
