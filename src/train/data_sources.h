// The sources of records that a recipe names, as they are read: which files, how the records of
// each become documents, and which evaluation set they belong to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "text/row/dataset.h"
#include "text/row/epoch_shares.h"
#include "text/row/held_out.h"
#include "text/row/record_source.h"

namespace snug::train {

// An evaluation set of its own: the entries of eval_data that have one name.
struct EvaluationSources {
  std::string name;
  std::vector<text::RecordSource> sources;
};

// What all sources of a recipe have alike. Its max_length must not be open.
text::DatasetOptions document_options(const formats::Recipe& recipe,
                                      const models::ModelConfig& model);

// Of recipe.data; `options` says what all sources have alike. Throws UserError for files that are
// not there, and fields and roles that Snug does not read.
std::vector<text::RecordSource> training_sources(const formats::Recipe& recipe,
                                                 const text::DatasetOptions& options);

// Of recipe.eval_data, in its order. Throws as training_sources does.
std::vector<EvaluationSources> evaluation_sources(const formats::Recipe& recipe,
                                                  const text::DatasetOptions& options);

// Which records of the training sources evaluate, as val_set_size says; nothing where it is 0. A
// number reads all sources. Throws UserError where none would be left to train on.
std::optional<text::HeldOut> held_out_records(const formats::Recipe& recipe,
                                              const std::vector<text::RecordSource>& training,
                                              const text::TokenizerOpener& open);

// What an epoch takes of each source's documents, which come in groups of `group`: as the entries'
// weights and repeats say; empty where all are taken once.
std::vector<text::EpochPart> epoch_parts(const formats::Recipe& recipe,
                                         const text::Dataset& training, int64_t group);

// What the log says of these parts, where there are any; else empty.
std::string describe_parts(const std::vector<text::EpochPart>& parts,
                           const text::Dataset& training);

// The name of the evaluation set of the records that val_set_size holds out.
inline constexpr std::string_view kHeldOutName = "held_out";

}  // namespace snug::train
