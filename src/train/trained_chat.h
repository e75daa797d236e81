// What a run's data say of the folder that it saves.
#pragma once

#include <string>
#include <vector>

#include "formats/folder/trained_chat.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "text/row/dataset.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::train {

// The chat template that rendered the data, and the ids that end a generated text: those of the
// model's folder (of the adapter's before, where training goes on from one) and those that end what
// is learned. Tells the user where these are others.
formats::TrainedChat trained_chat(const text::DatasetAudit& audit, const models::ModelSource& model,
                                  const std::string& adapter);

// The tokens that were added to the tokenizer.
std::vector<formats::NewToken> new_tokens(const text::Tokenizer& tokenizer);
// Says which, and where their rows do not train.
void tell_new_tokens(const std::vector<formats::NewToken>& tokens, const formats::Recipe& recipe);

// Says which tokens the folder of recipe.adapter has that this tokenizer lacks.
void tell_tokens_of_adapter(const text::Tokenizer& tokenizer, const formats::Recipe& recipe,
                            const models::ModelSource& model);

}  // namespace snug::train
