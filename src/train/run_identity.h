// What makes a run that run, so that resuming knows what has changed since.
#pragma once

#include "formats/recipe.h"
#include "models/config.h"
#include "runtime/trainer_state.h"
#include "text/document_store.h"

namespace snug::train {

// Of a recipe whose defaults are filled in. Fixed are the method, its shape, the types of the state
// and the order of the rows, by their keys, and the model and the data, by fingerprints: a folder
// may move. Free are the other keys that change numbers. Keys that do not (output, logging, memory
// budgets) are left out. The caller adds the compute type
// and the machine.
runtime::RunIdentity identity_of(const formats::Recipe& recipe, const models::ModelSource& model,
                                 const text::DocumentStore& documents);

// Tells what is free on standard error. Throws UserError naming everything fixed that differs.
void check_identity(const runtime::RunIdentity& saved, const runtime::RunIdentity& now,
                    const std::string& checkpoint);

}  // namespace snug::train
