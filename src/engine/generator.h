// Continues prompts, several of them in parallel, with a cache of keys and values. Greedy answers
// depend on the batch only through rounding; sampling draws the same random numbers in every batch.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/cached_forward.h"
#include "engine/inference.h"
#include "engine/request.h"
#include "engine/sampling.h"

namespace snug::engine {

struct GenerationOptions {
  SamplingOptions sampling;
  int64_t max_new_tokens = 0;
  std::vector<int32_t> stop_ids;
};

struct Generation {
  Ids ids;               // new tokens; if a stop id ended them, it is the last
  bool stopped = false;  // by a stop id or by OnToken rather than by max_new_tokens
};

enum class PromptReader : uint8_t { decoder, encoder, both };

struct GenerationTimes {
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

// Sizes that hold the longest of these prompts with its new tokens, for at most `batch` prompts in
// parallel. `reader`: which part of the model reads prompts.
plan::InferenceShape shape_for(std::span<const Ids> prompts, const GenerationOptions& options,
                               int64_t batch, PromptReader reader = PromptReader::decoder);
PromptReader prompt_reader(const models::ModelConfig& model);

class Generator {
 public:
  // Called with the prompt's number and each new token as it is chosen; returning true ends the
  // answer.
  using OnToken = std::function<bool(int64_t prompt, int32_t id)>;

  // The executor's job must contain the programs of `shape`, with the weights of `model`; both must
  // outlive the object.
  Generator(runtime::Executor& executor, const models::ModelConfig& model,
            const plan::InferenceShape& shape)
      : model_(model), forward_(executor, shape) {}
  explicit Generator(Inference& inference)
      : Generator(inference.executor(), inference.model(), inference.shape()) {}

  // Takes any number of prompts and returns one result for each, in their order. Throws UserError
  // for an empty prompt, an id that the model has no row for, a prompt that leaves no room for
  // max_new_tokens, and sampling options for which the programs select another number of
  // candidates.
  std::vector<Generation> run(std::span<const Ids> prompts, const GenerationOptions& options,
                              const OnToken& on_token = nullptr);

  const GenerationTimes& times() const { return times_; }  // of the last run

 private:
  struct Group;
  void check(std::span<const Ids> prompts, const GenerationOptions& options) const;
  void prefill(Group& group);
  void prefill_encoder(Group& group);
  void decode(Group& group);
  void take_token(Group& group, int64_t sequence);
  std::span<const float> logits(Group& group, int64_t sequence) const;

  const models::ModelConfig& model_;
  CachedForward forward_;
  GenerationTimes times_;
};

// Throws UserError for an id outside the vocabulary; `what` says in the message what the ids are.
void check_ids(std::span<const int32_t> ids, const models::ModelConfig& model, const char* what);

}  // namespace snug::engine
