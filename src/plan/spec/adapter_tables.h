// The tables of embedding and head that an adapter's files bring to a model, as PEFT loads them:
// those that train whole (modules_to_save), those that PEFT saves next to the adapter
// (save_embedding_layers), and rows of single tokens (trainable_token_indices). A head that is the
// embedding becomes a tensor of its own where one of the two alone is replaced, or both are apart;
// a vocabulary that was resized is that of the tables.
#pragma once

#include <filesystem>

#include "methods/lora.h"
#include "models/config/config.h"

namespace snug::plan {

// Says what of an adapter's files is left out, if anything is.
void say_left_out(const std::filesystem::path& adapter);

// The model with those tables; itself for an adapter without any. Opens the adapter's files. Throws
// UserError for tensors that are of no weight of the model, and tables that do not go together.
models::ModelConfig with_adapter_tables(const models::ModelConfig& model,
                                        const std::filesystem::path& adapter);

// What applying the adapter to that model does to its tables.
void add_adapter_tables(const models::ModelConfig& model, const std::filesystem::path& adapter,
                        methods::LoraOptions& options);

}  // namespace snug::plan
