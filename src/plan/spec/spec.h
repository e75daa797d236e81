// Turns what the user wrote into a plan's input: a recipe and a model's shape become a spec.
#pragma once

#include <functional>
#include <optional>

#include "plan/job/job.h"
#include "text/record/record_form.h"

namespace snug::formats {
struct Recipe;
}

namespace snug::plan {

// Adapts a spec to the data, for any length of rows: sets longest_document, and lowers row_segments
// to the most documents that a row can have. Throws UserError where rows are so short that nothing
// of an answer is left. Empty: there is no data.
using RowShape = std::function<void(TrainingSpec&)>;

// Throws UserError, with the recipe's location, for impossible combinations: max_length beyond the
// model's positions or still auto, a micro-batch of 2^31 tokens or more, bf16 compute where the
// target has none, adamw_bf16 in fp32, offloading without recomputed layers; for modules to train
// or freeze that the model does not have; and for a chat_template that is not known. With a
// `shape`, the spec's rows are adapted to the data.
TrainingSpec training_spec(const formats::Recipe& recipe, const models::ModelConfig& model,
                           const program::Target& target, const RowShape& shape = {});

// Throws UserError: max_length=auto needs data to become a number (choose_length.h), and there are
// none.
[[noreturn]] void refuse_open_length(const formats::Recipe& recipe);

// The recipe with the defaults that depend on the model: a max_length that was not given is at most
// the model's positions; a folder stored in 4 bits makes the method qlora; and an adapter with
// which training begins sets its rank, alpha, scaling and target modules where the recipe does not.
// Throws UserError for a recipe that asks for another storage format than the folder has, and for
// an adapter that Snug cannot apply.
formats::Recipe resolve(formats::Recipe recipe, const models::ModelConfig& model);

// The compute type that compute_dtype means on this target. By default bf16 where the target
// multiplies in bf16, else f32.
program::DType compute_type(const formats::Recipe& recipe, const program::Target& target);

// The record form that data_format names; nothing for auto.
std::optional<text::RecordForm> record_form(formats::DataFormat format);

// How the base model's linears are stored; nothing: in the compute type. Throws UserError for a
// recipe that asks for another storage format than the folder has, or for double quantisation of
// weights that are not in 4 bits.
std::optional<passes::QuantizeOptions> quantization(const formats::Recipe& recipe,
                                                    const models::ModelConfig& model);

// The properties of the base model that methods may check (methods/method.h).
methods::BaseModel base_model(const models::ModelConfig& model,
                              const std::optional<passes::QuantizeOptions>& quantization);

}  // namespace snug::plan
