// What makes a run that run, so that resuming knows what has changed since.
#pragma once

#include <cstdint>
#include <string>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "runtime/saving/trainer_state.h"
#include "text/row/row_source.h"

namespace snug::train {

// The identity of a run, whose recipe has its defaults filled in. Fixed are the method, its shape,
// the types of the state and the order of the rows, by their keys, and the model's config.json and
// the data, by fingerprints, with what an epoch takes of them: a folder may move. Free are the
// other keys that change numbers. Keys that do not (output, logging, memory budgets) are left out.
// The caller adds the compute type and the machine, and what is known once it was read:
// add_weights, add_adapter.
runtime::RunIdentity identity_of(const formats::Recipe& recipe, const models::ModelSource& model,
                                 const text::RowSource& rows);

// The digests of the model's weights, and of the adapter that training began with.
void add_weights(runtime::RunIdentity& identity, uint64_t digest);
void add_adapter(runtime::RunIdentity& identity, uint64_t digest);

// Compares what is known before anything was loaded. Tells what is free on standard error. Throws
// UserError naming everything fixed that differs.
void check_identity(const runtime::RunIdentity& saved, const runtime::RunIdentity& now,
                    const std::string& checkpoint);
// Compares what was loaded.
void check_read_identity(const runtime::RunIdentity& saved, const runtime::RunIdentity& now,
                         const std::string& checkpoint);

}  // namespace snug::train
