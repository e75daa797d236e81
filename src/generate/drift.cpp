#include "generate/drift.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "engine/sampling.h"
#include "generate/score.h"

namespace snug::generate {
namespace {

// log(sum(exp(logits)))
double log_sum(std::span<const float> logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

using OnPrediction = std::function<void(std::span<const float> logits, int32_t next)>;

// Reads a document, and calls `visit` for each id that is predicted.
void predict(engine::Inference& inference, const ComparedDocument& document,
             const OnPrediction& visit) {
  const bool predicts_first = !document.encoder_ids.empty();
  size_t next = predicts_first ? 0 : 1;
  const auto on_logits = [&](std::span<const float> logits) {
    if (next < document.ids.size()) visit(logits, document.ids[next]);
    ++next;
  };
  if (predicts_first)
    answer_log_probabilities(inference, document.encoder_ids, document.ids, on_logits);
  else
    log_probabilities(inference, document.ids, on_logits);
}

// The model that lies in a folder as it is, where the recipe names one that is made of more.
formats::Recipe recipe_of_folder(formats::Recipe recipe, const std::string& folder) {
  recipe.model = folder;
  recipe.adapter.clear();
  recipe.method = formats::Method::lora;
  recipe.load_in_4bit = false;
  recipe.load_head_in_4bit = recipe.load_experts_in_4bit = false;
  for (const char* key : {"adapter", "method", "load_in_4bit", "load_head_in_4bit",
                          "load_experts_in_4bit", "double_quant"})
    recipe.given.erase(key);
  return recipe;
}

// For the longest of the documents.
plan::InferenceShape shape_of_documents(const models::ModelConfig& model,
                                        std::span<const ComparedDocument> documents) {
  int64_t decoder = 0;
  int64_t encoder = 0;
  for (const ComparedDocument& document : documents) {
    const int64_t repeated = model.repeats_prompt ? std::ssize(document.encoder_ids) : 0;
    decoder = std::max(decoder, std::ssize(document.ids) + repeated);
    encoder = std::max(encoder, std::ssize(document.encoder_ids));
  }
  return score_shape(decoder, encoder);
}

}  // namespace

engine::InferenceMemory planned_drift_memory(const formats::Recipe& recipe,
                                             std::span<const ComparedDocument> documents) {
  const models::ModelConfig model = runtime::open_model(recipe).config;
  engine::InferenceMemory memory =
      engine::planned_memory(recipe, model, shape_of_documents(model, documents));
  // A row of the file's logits, next to the model's own.
  memory.arena_bytes += model.vocab_size * static_cast<int64_t>(sizeof(float));
  return memory;
}

void DriftSums::add(std::span<const float> trained, std::span<const float> other, int32_t next) {
  SNUG_CHECK_EQ(trained.size(), other.size());
  const double trained_sum = log_sum(trained);
  const double between_sums = trained_sum - log_sum(other);
  // The difference of log-probabilities, exactly zero where the logits are equal.
  const auto difference = [&](size_t id) {
    return double{trained[id]} - double{other[id]} - between_sums;
  };
  double kl = 0;
  for (size_t id = 0; id < trained.size(); ++id)
    if (const double probability = std::exp(trained[id] - trained_sum); probability != 0)
      kl += probability * difference(id);
  // Rounding alone makes it negative. What is not a number stays so.
  if (kl < 0) kl = 0;
  const double of_next = std::abs(difference(static_cast<size_t>(next)));
  ++sums_.tokens;
  sums_.mean_kl += kl;
  sums_.mean_difference += of_next;
  // In this order, what is not a number replaces what is one.
  if (!(kl <= sums_.most_kl)) sums_.most_kl = kl;
  if (!(of_next <= sums_.most_difference)) sums_.most_difference = of_next;
  if (engine::argmax(trained) == engine::argmax(other)) sums_.equal_greedy += 1;
}

Drift DriftSums::drift() const {
  SNUG_CHECK(sums_.tokens > 0, "nothing was compared");
  const auto tokens = static_cast<double>(sums_.tokens);
  Drift drift = sums_;
  drift.mean_kl /= tokens;
  drift.mean_difference /= tokens;
  drift.equal_greedy /= tokens;
  return drift;
}

TrainedOutputs::TrainedOutputs(formats::Recipe recipe, std::vector<ComparedDocument> documents)
    : recipe_(std::move(recipe)),
      model_(runtime::open_model(recipe_)),
      documents_(std::move(documents)) {
  costs_.documents = std::ssize(documents_);
  costs_.tokens = predictions(documents_);
  SNUG_CHECK(costs_.tokens > 0, "nothing to compare");
  costs_.row_bytes = model_.config.vocab_size * static_cast<int64_t>(sizeof(float));
  costs_.kept_bytes = costs_.tokens * costs_.row_bytes;
  kept_.reserve(costs_.kept_bytes);
}

void TrainedOutputs::compute() {
  engine::Inference inference(recipe_, model_, shape_of_documents(model_.config, documents_));
  arena_bytes_ = inference.arena_bytes();
  compute_type_ = inference.compute_type();
  for (const ComparedDocument& document : documents_)
    predict(inference, document, [&](std::span<const float> logits, int32_t /*next*/) {
      kept_.append(logits.data(), static_cast<int64_t>(logits.size_bytes()));
    });
  kept_.finish();
  SNUG_CHECK_EQ(kept_.size(), costs_.kept_bytes);
}

Drift TrainedOutputs::compare(const std::string& folder) const {
  const formats::Recipe recipe = recipe_of_folder(recipe_, folder);
  models::ModelSource model = runtime::open_model(recipe);
  if (model.config.vocab_size != model_.config.vocab_size)
    base::throw_user_error("{} has {} tokens, and the trained model {}, so they are not compared",
                           folder, model.config.vocab_size, model_.config.vocab_size);
  engine::Inference inference(recipe, std::move(model),
                              shape_of_documents(model_.config, documents_));
  arena_bytes_ = inference.arena_bytes();
  DriftSums sums;
  std::vector<float> trained(static_cast<size_t>(model_.config.vocab_size));
  int64_t offset = 0;
  for (const ComparedDocument& document : documents_)
    predict(inference, document, [&](std::span<const float> logits, int32_t next) {
      kept_.read_at(offset, trained.data(), costs_.row_bytes);
      offset += costs_.row_bytes;
      sums.add(trained, logits, next);
    });
  return sums.drift();
}

}  // namespace snug::generate
