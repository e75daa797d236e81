// The adapters that requests choose from, next to one another (methods/lora_slots.h): what the
// recipe says of them, and what their files need.
#pragma once

#include <string>
#include <vector>

#include "methods/lora_slots.h"
#include "models/config/config.h"
#include "program/ir/program.h"

namespace snug::formats {
struct Recipe;
}

namespace snug::plan {

struct NamedAdapter {
  std::string name;
  std::string folder;
};

// Those that the recipe names, in their order, each of which has the slot of its place. Throws
// UserError for an entry that is not NAME=FOLDER or NAME:FOLDER, and for a name that is given
// twice.
std::vector<NamedAdapter> named_adapters(const formats::Recipe& recipe);

// The slots that hold the recipe's adapters on this model; none where it asks for none. Opens the
// files and reads no values. Throws UserError, with the adapter's name, for what only an adapter
// that is loaded alone can have, for one that does not fit the model, as check_adapter does, and
// for one that does not fit the slots that the recipe asks for.
methods::LoraSlots adapter_slots(const formats::Recipe& recipe, const models::ModelConfig& model,
                                 program::DType compute);

}  // namespace snug::plan
