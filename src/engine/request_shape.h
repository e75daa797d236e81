// The sizes of programs that hold requests, and whether a request fits in the sizes that there are.
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/request.h"
#include "models/config/config.h"
#include "plan/job/assembly.h"

namespace snug::engine {

// The ids that the decoder reads before the first new token.
Ids read_by_decoder(const Ids& prompt, const models::ModelConfig& model);

// Sizes that hold the longest of these requests, for at most `batch` of them side by side, with
// programs of their own for fewer sequences and tokens.
plan::InferenceShape shape_for(std::span<const Request> requests, int64_t batch,
                               const models::ModelConfig& model);

// How many of the likeliest tokens this request needs of each row; 0: all logits.
int64_t candidates_of(const Request& request);

// Whether guesses of this request's tokens can be verified: each of its tokens is the likeliest of
// its row, whatever stands before.
bool can_be_guessed(const Request& request);

// Throws UserError for a request that can never run with programs of these sizes, saying what to
// do.
void check_request(const Request& request, const models::ModelConfig& model,
                   const plan::InferenceShape& shape);

// Throws UserError for an adapter that is none of these; empty: none is asked for.
void check_adapter(const std::string& adapter, std::span<const std::string> adapters);

}  // namespace snug::engine
