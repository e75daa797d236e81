// What `snug bench decode` makes of a card, on the emulated device.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/captured_stream.h"
#include "engine/cached_forward.h"
#include "generate/decoding_profile.h"
#include "golden_recipe.h"
#include "library_calls.h"
#include "refusals.h"

namespace snug::testing {
namespace {

// A rate is that of tokens; kernels and graphs are there before the first of them, however long
// that takes.
TEST(EmulatedDecoding, IsTimedWhenItsGraphsAreThere) {
  constexpr std::chrono::milliseconds kGraphTime(1000);
  cuda_emulator::graph_time = kGraphTime;
  const uint64_t before = cuda_emulator::graphs;
  const CapturedStream output(stdout);
  EXPECT_EQ(generate::profile_decoding(
                golden_recipe("basic", {"ids=5 6 7", "temperature=0", "max_new_tokens=4",
                                        "compute_dtype=bf16", "backend=cuda"}),
                true),
            0);
  cuda_emulator::graph_time = std::chrono::milliseconds(0);
  EXPECT_GT(cuda_emulator::graphs, before);
  const auto result = nlohmann::json::parse(output.text());
  EXPECT_EQ(result["new_tokens"], 4);
  EXPECT_LT(result["decode_seconds"].get<double>(),
            std::chrono::duration<double>(kGraphTime).count());
}

// A prompt's chunk and a token after it, of keys and values in 8 bits.
std::vector<std::vector<float>> logits_in_8_bits(const std::string& backend) {
  const formats::Recipe recipe =
      golden_recipe("grouped_tied", {"kv_cache_dtype=int8", "backend=" + backend});
  const models::ModelSource model = runtime::open_model(recipe);
  const engine::Ids ids = random_ids(20, model.config.vocab_size, 7);
  engine::Inference inference(recipe, model,
                              {.sequences = 2, .capacity = 20, .prefill_tokens = 32});
  engine::CachedForward forward(inference.executor(), inference.shape());
  std::vector<std::vector<float>> rows;
  const auto keep = [&] { rows.emplace_back(forward.logits(1).begin(), forward.logits(1).end()); };
  const engine::SequencePart prompt{1, std::span(ids).first(19)};
  forward.prefill({&prompt, 1});
  keep();
  forward.decode(engine::Ids{engine::CachedForward::kIdle, ids[19]});
  keep();
  return rows;
}

// An element that lies between two numbers may be rounded to either.
TEST(EmulatedDecoding, In8BitsHasTheLogitsOfTheCpu) {
  const auto card = logits_in_8_bits("cuda");
  const auto cpu = logits_in_8_bits("cpu");
  for (size_t row = 0; row < cpu.size(); ++row)
    EXPECT_LT(relative_error(card[row], cpu[row]), 2e-3) << row;
}

// What is guessed and verified on a card is what the processor says without guesses.
TEST(EmulatedDecoding, GuessedTokensAreThoseOfTheCpu) {
  const engine::Request request{.prompt = {5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7}, .max_new_tokens = 12};
  const auto answered = [&](const char* backend, int64_t guesses) {
    const formats::Recipe recipe = golden_recipe("grouped_tied", {std::string(backend)});
    const models::ModelSource model = runtime::open_model(recipe);
    plan::InferenceShape shape = engine::shape_for({&request, 1}, 1, model.config);
    plan::allow_guesses(shape, guesses);
    engine::Inference inference(recipe, model, shape);
    engine::Engine engine(inference);
    const engine::Ids ids = engine.answers({&request, 1}).front().ids;
    EXPECT_EQ(engine.times().right_guesses > 0, guesses > 0);
    return ids;
  };
  EXPECT_EQ(answered("backend=cuda", 4), answered("backend=cpu", 0));
}

}  // namespace
}  // namespace snug::testing
