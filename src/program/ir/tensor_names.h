// The names of tensors that code looks up by name; each name is spelled out only here.
#pragma once

#include <string>
#include <string_view>

#include "base/token_streams.h"
#include "program/ir/program_name.h"

namespace snug::program {

// Batch tensors that the host sets. These names are for the decoder's stream; stream_name gives
// those of an encoder's stream.
inline constexpr std::string_view kTokensName = "tokens";
inline constexpr std::string_view kTargetsName = "targets";
inline constexpr std::string_view kPositionsName = "positions";
inline constexpr std::string_view kQueryBoundsName = "query_bounds";
// Bounds of the answer within each segment.
inline constexpr std::string_view kAnswerBoundsName = "answer_bounds";
// What was found out of answers before they are learned: how much better each segment was rewarded
// than its group, what each token counts, and the log-probabilities of tokens that the answers were
// made with.
inline constexpr std::string_view kAdvantagesName = "advantages";
inline constexpr std::string_view kTokenWeightsName = "token_weights";
inline constexpr std::string_view kOldName = "old.log_probabilities";
// For each group of segments: 1 if its answer is desirable, -1 if not, 0 if the group is empty.
inline constexpr std::string_view kLabelsName = "labels";
inline constexpr std::string_view kKeyBoundsName = "key_bounds";
inline constexpr std::string_view kSlotsName = "slots";
// The pages of caches that each segment has (program/kinds/attention/attention.h).
inline constexpr std::string_view kPagesName = "pages";
inline constexpr std::string_view kOutputRowsName = "output_rows";
// Where each row has the part of its own adapter (methods/lora_slots.h).
inline constexpr std::string_view kAdapterRowsName = "adapter_rows";

// Numbers that the host sets.
inline constexpr std::string_view kInverseTokensName = "inverse_tokens";
inline constexpr std::string_view kInversePairsName = "inverse_pairs";
inline constexpr std::string_view kInverseChosenTokensName = "inverse_chosen_tokens";
inline constexpr std::string_view kInverseLearnedTokensName = "inverse_learned_tokens";
inline constexpr std::string_view kInverseDesirableName = "inverse_desirable";
inline constexpr std::string_view kInverseUndesirableName = "inverse_undesirable";
inline constexpr std::string_view kInverseDocumentTokensName = "inverse_document_tokens";
inline constexpr std::string_view kLearningRateName = "learning_rate";
inline constexpr std::string_view kStepName = "step";
inline constexpr std::string_view kRandomName = "random";
// The factor of the losses from which gradients begin, and the counts of finite and skipped steps.
inline constexpr std::string_view kLossScaleName = "loss_scale";
inline constexpr std::string_view kLossScaleCountsName = "loss_scale.counts";
// Log-probabilities of segments, or of tokens, under the reference model.
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
// 1, or NaN where an update changes nothing.
inline constexpr std::string_view kFiniteFactorName = "finite_factor";

// The name of a tensor that programs of a job do not share, because it differs in shape.
std::string own_name(const ProgramKey& program, std::string_view name);

// The name of a batch tensor for a stream: "query_bounds", "encoder.query_bounds".
std::string stream_name(base::TokenStream stream, std::string_view name);

// The name of the host's copy of a tensor that it gives to a program or reads from it.
std::string host_name(std::string_view tensor);

// The names of tensors that belong to a trainable tensor.
std::string gradient_name(std::string_view trainable);
std::string master_name(std::string_view trainable);
std::string first_moment_name(std::string_view trainable);
std::string second_moment_name(std::string_view trainable);
// Second moments of a matrix, kept as means over each row and each column; for a vector they are
// those of its elements.
std::string row_moment_name(std::string_view trainable);
std::string column_moment_name(std::string_view trainable);
// The average of its values over the steps of a run.
std::string average_name(std::string_view trainable);
// The scales of 8-bit moments.
std::string first_scale_name(std::string_view trainable);
std::string second_scale_name(std::string_view trainable);
// For updates that run tensor by tensor: the norm and the clip factor of a single gradient.
std::string gradient_norm_name(std::string_view trainable);
std::string clip_factor_name(std::string_view trainable);

// The scratch memory of an operation.
std::string workspace_name(size_t operation);

// The trainable tensor's name for its master's name or its own; other names are returned unchanged.
std::string original_name(std::string_view tensor);

// The staging memory of a program that loads or saves, for each of its slots;
// plan/job/storage_programs.h explains its content.
std::string staging_slot_name(int slot);
std::string staging_stage_name(int slot);
std::string staging_absmax_name(int slot);
std::string staging_values_name(int slot);
std::string staging_scales_name(int slot);

}  // namespace snug::program
