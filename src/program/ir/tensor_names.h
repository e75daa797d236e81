// Names of tensors that code refers to without having made them: each is written here alone.
#pragma once

#include <string>
#include <string_view>

#include "base/token_streams.h"
#include "program/ir/program_name.h"

namespace snug::program {

// A batch, as the host fills it. Of the decoder's stream: those of an encoder's are named by
// stream_name.
inline constexpr std::string_view kTokensName = "tokens";
inline constexpr std::string_view kTargetsName = "targets";
inline constexpr std::string_view kPositionsName = "positions";
inline constexpr std::string_view kQueryBoundsName = "query_bounds";
// Of the part of each segment whose losses are an answer's.
inline constexpr std::string_view kAnswerBoundsName = "answer_bounds";
// Of each group of segments: whether its answer is desirable (1) or not (-1); 0: it is empty.
inline constexpr std::string_view kLabelsName = "labels";
inline constexpr std::string_view kKeyBoundsName = "key_bounds";
inline constexpr std::string_view kSlotsName = "slots";
inline constexpr std::string_view kOutputRowsName = "output_rows";

// What else the host sets.
inline constexpr std::string_view kInverseTokensName = "inverse_tokens";
inline constexpr std::string_view kInversePairsName = "inverse_pairs";
inline constexpr std::string_view kInverseChosenTokensName = "inverse_chosen_tokens";
inline constexpr std::string_view kInverseDesirableName = "inverse_desirable";
inline constexpr std::string_view kInverseUndesirableName = "inverse_undesirable";
inline constexpr std::string_view kInverseDocumentTokensName = "inverse_document_tokens";
inline constexpr std::string_view kLearningRateName = "learning_rate";
inline constexpr std::string_view kStepName = "step";
inline constexpr std::string_view kRandomName = "random";
// By which losses are multiplied before their gradients begin, and how its last steps went.
inline constexpr std::string_view kLossScaleName = "loss_scale";
inline constexpr std::string_view kLossScaleCountsName = "loss_scale.counts";
// Log-probabilities of segments by the model that is compared with.
inline constexpr std::string_view kReferenceName = "reference.log_probabilities";

// Results.
inline constexpr std::string_view kLossName = "loss";
inline constexpr std::string_view kMeasuresName = "measures";
inline constexpr std::string_view kKeptReferenceName = "kept.log_probabilities";
inline constexpr std::string_view kRouterLossName = "router_loss";
inline constexpr std::string_view kLogitsName = "logits";
inline constexpr std::string_view kLikeliestLogitsName = "likeliest.logits";
inline constexpr std::string_view kLikeliestIdsName = "likeliest.ids";
inline constexpr std::string_view kGradientNormName = "gradient_norm";
inline constexpr std::string_view kClipFactorName = "clip_factor";

// Of a tensor that a program does not share: where programs of a job differ in shape.
std::string own_name(const ProgramKey& program, std::string_view name);

// What a stream of a batch has of a tensor above: "query_bounds", "encoder.query_bounds".
std::string stream_name(base::TokenStream stream, std::string_view name);

// The host's side of what it gives to a program or takes from it.
std::string host_name(std::string_view tensor);

// What belongs to a trainable tensor.
std::string gradient_name(std::string_view trainable);
std::string master_name(std::string_view trainable);
std::string first_moment_name(std::string_view trainable);
std::string second_moment_name(std::string_view trainable);
// Second moments of a matrix that are kept as their means over each row and over each column; of a
// vector, its elements' own.
std::string row_moment_name(std::string_view trainable);
std::string column_moment_name(std::string_view trainable);
// Of moments in 8 bits.
std::string first_scale_name(std::string_view trainable);
std::string second_scale_name(std::string_view trainable);
// Where each tensor is updated on its own: of its gradient alone.
std::string gradient_norm_name(std::string_view trainable);
std::string clip_factor_name(std::string_view trainable);

// Scratch of an operation.
std::string workspace_name(size_t operation);

// Of a trainable tensor by its master's name or its own; other names stay as they are.
std::string original_name(std::string_view tensor);

// The staging memory of a program that loads or saves, for each of its slots:
// plan/job/storage_programs.h says what they hold.
std::string staging_slot_name(int slot);
std::string staging_stage_name(int slot);
std::string staging_absmax_name(int slot);
std::string staging_values_name(int slot);
std::string staging_scales_name(int slot);

}  // namespace snug::program
