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
#include "formats/safetensors_writer.h"
#include "generate/cached_forward.h"
#include "generate/prompt.h"
#include "generate/sampling.h"

namespace snug::generate {
namespace {

std::vector<int32_t> read_ids(const formats::Recipe& recipe, const models::ModelSource& model) {
  if (recipe.ids.empty() == recipe.prompt.empty())
    recipe.fail("ids", recipe.ids.empty()
                           ? "is missing: give ids=\"1 5 9\", or prompt=\"...\", the text to score"
                           : "is given next to prompt; give one of the two");
  std::vector<int32_t> ids = recipe.ids.empty()
                                 ? open_tokenizer(recipe, model).encode(recipe.prompt)
                                 : recipe_ids(recipe, model.config);
  if (static_cast<int64_t>(ids.size()) > model.config.max_position)
    base::throw_user_error("the text has {} tokens, but the model has {} positions; score less",
                           ids.size(), model.config.max_position);
  if (ids.size() < 2)
    base::throw_user_error(
        "the text has {} of at least 2 tokens: each is scored by what stands before it, so the "
        "first has no score; give more text or more ids",
        ids.size());
  return ids;
}

double mean_loss(const std::vector<double>& logprobs) {
  if (logprobs.empty()) return 0;
  return -std::accumulate(logprobs.begin(), logprobs.end(), 0.0) /
         static_cast<double>(logprobs.size());
}

void print(const std::vector<int32_t>& ids, const std::vector<double>& logprobs,
           const Inference& inference, bool json) {
  if (json) {
    const nlohmann::json result = {{"ids", ids},
                                   {"logprobs", logprobs},
                                   {"loss", mean_loss(logprobs)},
                                   {"device", {{"peak_bytes", inference.device_bytes()}}}};
    base::print("{}\n", result.dump());
    return;
  }
  for (size_t i = 0; i < logprobs.size(); ++i)
    base::print("{:>8} {:>8} {:.6f}\n", i + 1, ids[i + 1], logprobs[i]);
  base::print("loss {:.6f} over {} tokens\n", mean_loss(logprobs), logprobs.size());
}

// A file that is there is not written over: it may be anything, a model's weights among it.
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

// Logits of a chunk lie on the device and on the host: of so many tokens both together are half of
// what those of plan::kPrefillTokens would be on one.
constexpr int64_t kScoreTokens = plan::kPrefillTokens / 4;

plan::InferenceShape score_shape(int64_t tokens) {
  constexpr int64_t kStep = plan::kMinPrefillTokens;
  return {.sequences = 1,
          .capacity = tokens,
          .prefill_tokens = std::min(kScoreTokens, (tokens + kStep - 1) / kStep * kStep),
          .all_logits = true};
}

std::vector<double> log_probabilities(
    Inference& inference, std::span<const int32_t> ids,
    const std::function<void(std::span<const float>)>& on_logits) {
  SNUG_CHECK(inference.spec().all_logits, "scoring needs the logits of every token");
  CachedForward forward(inference);
  const auto chunk = static_cast<size_t>(forward.prefill_tokens());
  std::vector<double> result;
  for (size_t first = 0; first < ids.size(); first += chunk) {
    const SequencePart part{0, ids.subspan(first, std::min(chunk, ids.size() - first))};
    forward.prefill({&part, 1});
    for (size_t i = 0; i < part.ids.size(); ++i) {
      const std::span<const float> logits = forward.logits(static_cast<int64_t>(i));
      if (on_logits) on_logits(logits);
      if (const size_t next = first + i + 1; next < ids.size())
        result.push_back(log_probability(logits, ids[next]));
    }
  }
  return result;
}

int score(const formats::Recipe& recipe, bool json) {
  check_output(recipe);
  const models::ModelSource model = runtime::open_model(recipe);
  if (model.config.has_encoder())
    recipe.fail("model",
                "has an encoder, for which snug score is not built: it scores one text; snug "
                "evaluate compares answers");
  const std::vector<int32_t> ids = read_ids(recipe, model);
  const auto tokens = static_cast<int64_t>(ids.size());
  Inference inference(recipe, model, score_shape(tokens));
  std::optional<formats::SafetensorsWriter> writer;
  if (!recipe.logits_out.empty())
    writer.emplace(recipe.logits_out,
                   std::vector<formats::TensorSpec>{
                       {"logits", base::DType::f32, {tokens, model.config.vocab_size}}});
  const std::vector<double> logprobs =
      log_probabilities(inference, ids, [&](std::span<const float> logits) {
        if (writer)
          writer->write("logits", logits.data(), static_cast<int64_t>(logits.size_bytes()));
      });
  if (writer) writer->finish();
  print(ids, logprobs, inference, json);
  return 0;
}

}  // namespace snug::generate
