#include "generate/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <system_error>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "engine/cached_forward.h"
#include "engine/questions/prompt.h"
#include "engine/sampling.h"
#include "formats/folder/safetensors_writer.h"

namespace snug::generate {
namespace {

// A text to score.
struct Text {
  std::vector<int32_t> prompt;  // encoder input; empty for a model without an encoder
  std::vector<int32_t> ids;
};

void check_one(const formats::Recipe& recipe, bool has_ids, bool has_text, const char* ids,
               const char* text) {
  if (has_ids == has_text)
    recipe.fail(ids, has_ids ? fmt::format("is given next to {}; give one of the two", text)
                             : fmt::format("is missing: give {}=\"1 5 9\", or {}=\"...\", the text",
                                           ids, text));
}

std::vector<int32_t> text_or_ids(const formats::Recipe& recipe, const models::ModelSource& model) {
  check_one(recipe, !recipe.ids.empty(), !recipe.prompt.empty(), "ids", "prompt");
  if (!recipe.ids.empty()) return engine::recipe_ids(recipe, model.config);
  return engine::open_tokenizer(recipe, model).encode(recipe.prompt);
}

// The answer ends in EOS, as in training.
std::vector<int32_t> answer_of(const formats::Recipe& recipe, const models::ModelSource& model) {
  check_one(recipe, !recipe.answer_ids.empty(), !recipe.answer.empty(), "answer_ids", "answer");
  if (!recipe.answer_ids.empty()) return engine::recipe_answer_ids(recipe, model.config);
  const text::Tokenizer tokenizer = engine::open_tokenizer(recipe, model);
  std::vector<int32_t> ids = tokenizer.encode(recipe.answer);
  const std::optional<int32_t> eos = tokenizer.eos_id();
  if (eos && (ids.empty() || ids.back() != *eos)) ids.push_back(*eos);
  tokenizer.require_rows(ids);
  return ids;
}

Text read_text(const formats::Recipe& recipe, const models::ModelSource& model) {
  if (model.config.has_encoder()) {
    Text text{text_or_ids(recipe, model), answer_of(recipe, model)};
    if (text.prompt.empty() || text.ids.empty())
      base::throw_user_error("the prompt or the answer has no token; each needs one");
    const size_t read = text.ids.size() + (model.config.repeats_prompt ? text.prompt.size() : 0);
    if (static_cast<int64_t>(read) > model.config.max_position)
      base::throw_user_error(
          "the decoder reads {} tokens, but the model has {} positions; score less", read,
          model.config.max_position);
    return text;
  }
  if (!recipe.answer.empty() || !recipe.answer_ids.empty())
    recipe.fail(recipe.answer.empty() ? "answer_ids" : "answer",
                "is for models with an encoder; give the whole text as prompt or ids");
  Text text{{}, text_or_ids(recipe, model)};
  if (static_cast<int64_t>(text.ids.size()) > model.config.max_position)
    base::throw_user_error("the text has {} tokens, but the model has {} positions; score less",
                           text.ids.size(), model.config.max_position);
  if (text.ids.size() < 2)
    base::throw_user_error(
        "the text has {} of at least 2 tokens: each is scored by what stands before it, so the "
        "first has no score; give more text or more ids",
        text.ids.size());
  return text;
}

double mean_loss(const std::vector<double>& logprobs) {
  if (logprobs.empty()) return 0;
  return -std::accumulate(logprobs.begin(), logprobs.end(), 0.0) /
         static_cast<double>(logprobs.size());
}

void print(const std::vector<int32_t>& ids, const std::vector<double>& logprobs,
           const engine::Inference& inference, bool json) {
  if (json) {
    const nlohmann::json result = {{"ids", ids},
                                   {"logprobs", logprobs},
                                   {"loss", mean_loss(logprobs)},
                                   {"device", inference.device_json()}};
    base::print("{}\n", result.dump());
    return;
  }
  const size_t first = ids.size() - logprobs.size();  // the first id that has a score
  for (size_t i = 0; i < logprobs.size(); ++i)
    base::print("{:>8} {:>8} {:.6f}\n", i + first, ids[i + first], logprobs[i]);
  base::print("loss {:.6f} over {} tokens\n", mean_loss(logprobs), logprobs.size());
}

// An existing file is never overwritten: it may be anything, even a model's weights.
void check_output(const formats::Recipe& recipe) {
  const std::filesystem::path path = recipe.logits_out;
  if (path.empty()) return;
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error)))
    recipe.fail("logits_out", fmt::format("is {}, which is there already; choose another name, or "
                                          "remove it first",
                                          recipe.logits_out));
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, error))
    recipe.fail("logits_out", fmt::format("is {}, but there is no folder {}; make it first",
                                          recipe.logits_out, folder.string()));
  base::require_writable_folder(folder);
}

}  // namespace

// Logits of a chunk lie both on the device and on the host: for this many tokens, both copies
// together take half the memory of one copy for plan::kPrefillTokens.
constexpr int64_t kScoreTokens = plan::kPrefillTokens / 4;

plan::InferenceShape score_shape(int64_t tokens, int64_t encoder_tokens) {
  constexpr int64_t kStep = plan::kMinPrefillTokens;
  plan::InferenceShape shape{
      .sequences = 1,
      .capacity = tokens,
      .prefill_tokens = std::min(kScoreTokens, (tokens + kStep - 1) / kStep * kStep),
      .encoder_tokens = encoder_tokens,
      .all_logits = true};
  if (encoder_tokens > 0) shape.capacity = {tokens, encoder_tokens};
  return shape;
}

std::vector<double> log_probabilities(
    engine::Inference& inference, std::span<const int32_t> ids,
    const std::function<void(std::span<const float>)>& on_logits) {
  SNUG_CHECK(inference.shape().all_logits, "scoring needs the logits of every token");
  engine::CachedForward forward(inference.executor(), inference.shape());
  const auto chunk = static_cast<size_t>(forward.prefill_tokens());
  std::vector<double> result;
  for (size_t first = 0; first < ids.size(); first += chunk) {
    const engine::SequencePart part{0, ids.subspan(first, std::min(chunk, ids.size() - first))};
    forward.prefill({&part, 1});
    for (size_t i = 0; i < part.ids.size(); ++i) {
      const std::span<const float> logits = forward.logits(static_cast<int64_t>(i));
      if (on_logits) on_logits(logits);
      if (const size_t next = first + i + 1; next < ids.size())
        result.push_back(engine::log_probability(logits, ids[next]));
    }
  }
  return result;
}

std::vector<double> answer_log_probabilities(
    engine::Inference& inference, std::span<const int32_t> prompt, std::span<const int32_t> answer,
    const std::function<void(std::span<const float>)>& on_logits) {
  SNUG_CHECK(inference.shape().all_logits, "scoring needs the logits of every token");
  engine::CachedForward forward(inference.executor(), inference.shape());
  // The decoder's input: each token of the answer is read one position after the position that
  // predicts it.
  std::vector<int32_t> read{static_cast<int32_t>(inference.model().decoder_start_id)};
  if (inference.model().repeats_prompt) read.insert(read.end(), prompt.begin(), prompt.end());
  const size_t first_scored = read.size() - 1;
  read.insert(read.end(), answer.begin(), answer.end() - 1);
  const auto chunk = static_cast<size_t>(forward.prefill_tokens());
  std::vector<double> result;
  for (size_t first = 0; first < read.size(); first += chunk) {
    const auto ids = std::span(read).subspan(first, std::min(chunk, read.size() - first));
    const engine::SequencePart part{0, ids, first == 0 ? prompt : std::span<const int32_t>()};
    forward.prefill({&part, 1});
    for (size_t i = 0; i < ids.size(); ++i) {
      if (first + i < first_scored) continue;
      const std::span<const float> logits = forward.logits(static_cast<int64_t>(i));
      if (on_logits) on_logits(logits);
      result.push_back(engine::log_probability(logits, answer[first + i - first_scored]));
    }
  }
  return result;
}

int score(const formats::Recipe& recipe, bool json) {
  check_output(recipe);
  const models::ModelSource model = runtime::open_model(recipe);
  const Text text = read_text(recipe, model);
  const auto tokens = static_cast<int64_t>(text.ids.size());
  const int64_t repeated = model.config.repeats_prompt ? std::ssize(text.prompt) : 0;
  engine::Inference inference(recipe, model,
                              score_shape(tokens + repeated, std::ssize(text.prompt)));
  std::optional<formats::SafetensorsWriter> writer;
  if (!recipe.logits_out.empty())
    writer.emplace(recipe.logits_out,
                   std::vector<formats::TensorSpec>{
                       {"logits", base::DType::f32, {tokens, model.config.vocab_size}}});
  const auto write = [&](std::span<const float> logits) {
    if (writer) writer->write("logits", logits.data(), static_cast<int64_t>(logits.size_bytes()));
  };
  const std::vector<double> logprobs =
      text.prompt.empty() ? log_probabilities(inference, text.ids, write)
                          : answer_log_probabilities(inference, text.prompt, text.ids, write);
  if (writer) writer->finish();
  print(text.ids, logprobs, inference, json);
  return 0;
}

}  // namespace snug::generate
