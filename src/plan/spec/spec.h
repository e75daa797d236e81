// Turns what the user wrote into a plan's input: a recipe and a model's shape become a spec.
#pragma once

#include <optional>

#include "plan/job/job.h"
#include "plan/spec/job_documents.h"

namespace snug::formats {
struct Recipe;
}

namespace snug::plan {

// Throws UserError, with the recipe's location, for combinations that cannot be: max_length beyond
// the model's positions or still auto, a micro-batch of 2^31 tokens or more, bf16 compute where the
// target has none, adamw_bf16 in fp32, offloading without recomputed layers; for modules to train
// or freeze that the model does not have; and for a chat_template that is not known. Rows are
// those of the documents (job_documents.h).
TrainingSpec training_spec(const formats::Recipe& recipe, const models::ModelConfig& model,
                           const program::Target& target, const JobDocuments& documents = {});

// Throws UserError: max_length=auto needs data to become a number (choose_length.h), and there are
// none.
[[noreturn]] void refuse_open_length(const formats::Recipe& recipe);

// The element type that compute_dtype means on this target: bf16 where it multiplies bf16, else
// f32.
program::DType compute_type(const formats::Recipe& recipe, const program::Target& target);

// How the base model's linears are stored; nothing: in the compute type. Throws UserError for a
// recipe that asks for another storage format than the folder has, or for double quantisation of
// weights that are not in 4 bits.
std::optional<passes::QuantizeOptions> quantization(const formats::Recipe& recipe,
                                                    const models::ModelConfig& model);

// The properties of the base model that methods may check (methods/method.h).
methods::BaseModel base_model(const models::ModelConfig& model,
                              const std::optional<passes::QuantizeOptions>& quantization);

}  // namespace snug::plan
