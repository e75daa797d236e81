// Refuses keys that a user set and that a training job would silently ignore.
#pragma once

#include <string>
#include <vector>

#include "formats/recipe/recipe.h"

namespace snug::plan {

// Throws UserError for a key of LoRA with method=full, for a key of full training with LoRA, and
// for documents per row where packing is off. A key that holds its default is accepted, since
// recipes written by programs list all keys. Where the command line chose the method, the file's
// keys for another method are accepted too, except for an adapter, since that would not be trained
// further.
void refuse_unused_keys(const formats::Recipe& recipe);

// What to say of keys of sampling in a file, where the job samples nothing.
std::vector<std::string> unread_sampling_keys(const formats::Recipe& recipe);

}  // namespace snug::plan
