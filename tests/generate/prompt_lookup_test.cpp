// Tokens that are guessed from the text so far and verified: the answers are those without guesses,
// whoever runs next to them, and what was guessed wrong leaves nothing behind.
#include "engine/prompt_lookup.h"

#include <algorithm>

#include "engine/cached_forward.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

using engine::Answer;
using engine::Engine;
using engine::EngineOptions;
using engine::Inference;
using engine::looked_up;
using engine::Request;

TEST(PromptLookup, TakesWhatFollowedTheLatestOccurrence) {
  EXPECT_EQ(looked_up(Ids{1, 2, 3, 4, 5, 9, 1, 2, 3}, 2), (Ids{4, 5}));
  EXPECT_EQ(looked_up(Ids{1, 2, 3, 4, 1, 2, 3, 7, 1, 2, 3}, 1), Ids{7});
  // Three tokens alike count before two that stand later.
  EXPECT_EQ(looked_up(Ids{1, 2, 3, 4, 8, 2, 3, 7, 1, 2, 3}, 1), Ids{4});
  EXPECT_EQ(looked_up(Ids{8, 2, 3, 4, 9, 2, 3}, 2), (Ids{4, 9}));
}

TEST(PromptLookup, GoesOnWithAPeriod) {
  EXPECT_EQ(looked_up(Ids{5, 6, 5, 6, 5, 6}, 5), (Ids{5, 6, 5, 6, 5}));
  EXPECT_EQ(looked_up(Ids{7, 7, 7}, 4), (Ids{7, 7, 7, 7}));
}

TEST(PromptLookup, GuessesNothingWhereNothingIsAlike) {
  EXPECT_EQ(looked_up(Ids{1, 2, 3, 1}, 4), Ids());  // one token alone is not enough
  EXPECT_EQ(looked_up(Ids{1, 2}, 4), Ids());
  EXPECT_EQ(looked_up(Ids{}, 4), Ids());
  EXPECT_EQ(looked_up(Ids{7, 7, 7}, 0), Ids());
}

// Models with and without windows, and with an encoder. Some say the same from the first token on,
// so that no guess is wrong.
struct GuessedModel {
  const char* name;
  bool has_wrong_guesses;
};

class GuessedAnswers : public ::testing::TestWithParam<GuessedModel> {
 protected:
  GuessedAnswers() : recipe_(golden_recipe(GetParam().name)), model_(runtime::open_model(recipe_)) {
    // Prompts that repeat themselves, by which untrained models repeat themselves too.
    for (const unsigned seed : {1U, 2U, 3U, 4U}) {
      const Ids piece = random_ids(3 + seed, model_.config.vocab_size, seed);
      Ids prompt;
      for (int i = 0; i < 3; ++i) prompt.insert(prompt.end(), piece.begin(), piece.end());
      requests_.push_back({.prompt = std::move(prompt), .max_new_tokens = 24});
    }
  }

  plan::InferenceShape shape(int64_t sequences, int64_t guesses) const {
    plan::InferenceShape shape = engine::shape_for(requests_, sequences, model_.config);
    shape.page_tokens = 8;
    plan::allow_guesses(shape, guesses);
    return shape;
  }

  static void expect_equal(const std::vector<Answer>& answers,
                           const std::vector<Answer>& expected) {
    ASSERT_EQ(answers.size(), expected.size());
    for (size_t i = 0; i < answers.size(); ++i) {
      EXPECT_EQ(answers[i].ids, expected[i].ids) << i;
      EXPECT_EQ(answers[i].finish, expected[i].finish) << i;
    }
  }

  formats::Recipe recipe_;
  models::ModelSource model_;
  std::vector<Request> requests_;
};

TEST_P(GuessedAnswers, AreThoseWithoutGuesses) {
  for (const int64_t sequences : {1, 3}) {
    Inference plain(recipe_, model_, shape(sequences, 0));
    Engine without(plain);
    const std::vector<Answer> expected = without.answers(requests_);
    Inference inference(recipe_, model_, shape(sequences, 5));
    Engine engine(inference);
    for (int again = 0; again < 2; ++again) expect_equal(engine.answers(requests_), expected);
    EXPECT_EQ(engine.used_pages(), 0);
    const engine::EngineTimes& times = engine.times();
    EXPECT_GT(times.right_guesses, 40);
    EXPECT_EQ(times.guessed_tokens > times.right_guesses, GetParam().has_wrong_guesses);
    EXPECT_LT(times.decode_runs, 2 * without.times().decode_runs);
    EXPECT_EQ(times.decode_tokens, 2 * without.times().decode_tokens);
  }
}

// The end comes in the middle of what was guessed right.
TEST_P(GuessedAnswers, EndWhereTheyEnd) {
  Inference inference(recipe_, model_, shape(2, 5));
  Engine engine(inference);
  const Answer whole = engine.answers({requests_.data(), 1}).front();
  for (size_t at = 0; at < whole.ids.size(); at += 5) {
    Request request = requests_.front();
    request.end.ids = {whole.ids[at]};
    const auto first = std::ranges::find(whole.ids, whole.ids[at]);
    const Answer answer = engine.answers({&request, 1}).front();
    EXPECT_EQ(answer.ids, Ids(whole.ids.begin(), first + 1));
    EXPECT_EQ(answer.finish, engine::Finish::stop);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GuessedAnswers,
                         ::testing::Values(GuessedModel{"grouped_tied", true},
                                           GuessedModel{"gemma3", true},
                                           GuessedModel{"bloom", false}, GuessedModel{"t5", false}),
                         [](const auto& test) { return std::string(test.param.name); });

// Logits of four tokens after a prompt: verified by one run of decode of which two stay and then by
// another, or each by a run of its own.
std::vector<std::vector<float>> logits_of_four(const formats::Recipe& recipe, bool are_guessed) {
  const models::ModelSource model = runtime::open_model(recipe);
  plan::InferenceShape shape{
      .sequences = 2, .capacity = 40, .prefill_tokens = 32, .page_tokens = 8};
  plan::allow_guesses(shape, 3);
  Inference inference(recipe, model, shape);
  engine::CachedForward forward(inference.executor(), inference.shape());
  const Ids ids = random_ids(25, model.config.vocab_size, 7);
  const std::span<const int32_t> answer = std::span(ids).last(4);
  const std::vector<engine::SequencePart> prompt{{1, std::span(ids).first(21)}};
  forward.prefill(prompt);
  std::vector<std::vector<float>> rows;
  const auto read = [&](std::span<const int32_t> tokens, int64_t kept) {
    const std::vector<engine::SequencePart> part{{1, tokens}};
    forward.decode(part);
    for (int64_t row = 0; row < kept; ++row) {
      const std::span<const float> logits = forward.logits(1, row);
      rows.emplace_back(logits.begin(), logits.end());
    }
    forward.keep(1, kept);
  };
  if (are_guessed) {
    const Ids half_wrong{answer[0], answer[1], answer[0], answer[0]};
    read(half_wrong, 2);
    read(answer.last(2), 2);
  } else {
    for (size_t i = 0; i < answer.size(); ++i) read(answer.subspan(i, 1), 1);
  }
  EXPECT_EQ(forward.length(1), 25);
  return rows;
}

TEST(GuessedLogits, AreThoseOfTokensOneByOne) {
  for (const char* model : {"grouped_tied", "gemma3"})
    for (const char* words : {"backend=cpu", "backend=reference", "kv_cache_dtype=int8"}) {
      const formats::Recipe recipe = golden_recipe(model, {words});
      const auto guessed = logits_of_four(recipe, true);
      const auto one_by_one = logits_of_four(recipe, false);
      ASSERT_EQ(guessed.size(), 4U);
      for (size_t row = 0; row < guessed.size(); ++row)
        EXPECT_LT(relative_error(guessed[row], one_by_one[row]), 1e-5)
            << model << ' ' << words << ' ' << row;
    }
}

class GuessesNextToOthers : public ::testing::Test {
 protected:
  formats::Recipe recipe_ = golden_recipe("grouped_tied");
  models::ModelSource model_ = runtime::open_model(recipe_);
  Request repeating_{.prompt = Ids{5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, 8}, .max_new_tokens = 20};

  plan::InferenceShape shape(std::span<const Request> requests) const {
    plan::InferenceShape shape = engine::shape_for(requests, 3, model_.config);
    plan::allow_guesses(shape, 4);
    return shape;
  }
};

// Only likeliest tokens are guessed; draws, penalties and log-probabilities are as they were.
TEST_F(GuessesNextToOthers, AreOfLikeliestTokensAlone) {
  std::vector<Request> requests(3, repeating_);
  requests[0].sampling = {.temperature = 0.7, .seed = 3};
  requests[1].sampling.repetition_penalty = 1.3;
  requests[2].log_probabilities = 0;
  Inference inference(recipe_, model_, shape(requests));
  Engine engine(inference);
  Inference plain(recipe_, model_, engine::shape_for(requests, 3, model_.config));
  Engine without(plain);
  const std::vector<Answer> answers = engine.answers(requests);
  const std::vector<Answer> expected = without.answers(requests);
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(answers[i].ids, expected[i].ids) << i;
  EXPECT_EQ(engine.times().guessed_tokens, 0);
  EXPECT_EQ(answers[2].log_probabilities.size(), 20U);
  requests[0] = repeating_;
  EXPECT_EQ(engine.answers(requests)[0].ids, without.answers(requests)[0].ids);
  EXPECT_GT(engine.times().right_guesses, 0);
}

// What a run verified is known to the next turn, and nothing else.
TEST_F(GuessesNextToOthers, TheNextTurnKnowsWhatWasKept) {
  Request next = repeating_;
  next.prompt.resize(60);
  plan::InferenceShape sizes = shape({&next, 1});
  sizes.page_tokens = 4;
  Inference inference(recipe_, model_, sizes);
  Engine engine(inference);
  const Answer answer = engine.answers({&repeating_, 1}).front();
  next.prompt = repeating_.prompt;
  next.prompt.insert(next.prompt.end(), answer.ids.begin(), answer.ids.end());
  next.prompt.push_back(9);
  const Answer second = engine.answers({&next, 1}).front();
  // The last new token was never read: 31 tokens have keys, of which 28 are whole pages.
  EXPECT_EQ(engine.times().known_tokens, 28);
  Inference plain(recipe_, model_, engine::shape_for({&next, 1}, 1, model_.config));
  EXPECT_EQ(Engine(plain).answers({&next, 1}).front().ids, second.ids);
}

// Guesses stay within what is promised, so nobody is preempted for them.
TEST_F(GuessesNextToOthers, StayWithinWhatIsPromised) {
  const std::vector<Request> requests(3, repeating_);
  plan::InferenceShape sizes = shape(requests);
  sizes.page_tokens = 4;
  Inference roomy(recipe_, model_, sizes);
  const std::vector<Answer> expected = Engine(roomy).answers(requests);
  sizes.pages = {12};  // of 8 that one needs in the end
  Inference tight(recipe_, model_, sizes);
  Engine engine(tight.executor(), model_.config, tight.shape(), {.expected_new_tokens = 4});
  const std::vector<Answer> answers = engine.answers(requests);
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(answers[i].ids, expected[i].ids) << i;
  EXPECT_GT(engine.times().preemptions, 0);
  EXPECT_GT(engine.times().right_guesses, 0);
  EXPECT_EQ(engine.used_pages(), 0);
}

}  // namespace
}  // namespace snug::testing
