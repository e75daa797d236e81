// What a run's data say of the folder that it saves.
#pragma once

#include <string>

#include "formats/folder/trained_chat.h"
#include "models/config/config.h"
#include "text/row/dataset.h"

namespace snug::train {

// The chat template that rendered the data, and the ids that end a generated text: those of the
// model's folder (of the adapter's before, where training goes on from one) and those that end what
// is learned. Tells the user where these are others.
formats::TrainedChat trained_chat(const text::DatasetAudit& audit, const models::ModelSource& model,
                                  const std::string& adapter);

}  // namespace snug::train
