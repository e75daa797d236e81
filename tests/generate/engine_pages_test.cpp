// Pages of keys and values through the engine: equal beginnings are read once, requests enter when
// there are pages, and an answer depends on neither.
#include <algorithm>
#include <map>
#include <random>

#include "../base/captured_stream.h"
#include "base/temporary_folder.h"
#include "engine/engine.h"
#include "golden_recipe.h"
#include "models/families/families.h"

namespace snug::testing {
namespace {

using engine::Answer;
using engine::AnswerEvent;
using engine::Engine;
using engine::Inference;
using engine::Request;
using engine::RequestId;

constexpr int32_t kPage = 16;
constexpr int64_t kCapacity = 90;
constexpr int64_t kChunk = 12;

plan::InferenceShape shape_of(int64_t sequences) {
  return {.sequences = sequences,
          .capacity = kCapacity,
          .prefill_tokens = kChunk,
          .page_tokens = kPage};
}

// `sequences` places whose pools hold `held` sequences of the capacity.
plan::InferenceShape small_pool(const models::ModelConfig& model, int64_t sequences, int64_t held) {
  plan::InferenceShape shape = shape_of(sequences);
  shape.pages = plan::pages_of_sequences(shape, models::stack_of(model), held);
  return shape;
}

engine::Ids joined(engine::Ids first, const engine::Ids& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A model with what it answers to requests that are alone, each in an engine of its own.
class EnginePages : public ::testing::TestWithParam<const char*> {
 protected:
  engine::Ids ids(size_t count, unsigned seed) const {
    return random_ids(count, model_.config.vocab_size, seed);
  }
  // Greedy, with log-probabilities, which are made of the bits of whole rows of logits.
  static Request request_of(engine::Ids prompt, int64_t new_tokens = 6) {
    return {.prompt = std::move(prompt), .max_new_tokens = new_tokens, .log_probabilities = 0};
  }
  static bool has_full(Inference& inference) {
    return std::ranges::any_of(inference.executor().job().key_pools,
                               [](const auto& pool) { return pool.group.window == 0; });
  }
  Answer alone(const Request& request, int64_t sequences = 4) {
    Inference inference(recipe_, model_, shape_of(sequences));
    return Engine(inference).answers({&request, 1}).front();
  }
  void expect_as_alone(const Answer& answer, const Request& request, int64_t sequences = 4) {
    const Answer expected = alone(request, sequences);
    EXPECT_EQ(answer.ids, expected.ids);
    ASSERT_EQ(answer.log_probabilities.size(), expected.log_probabilities.size());
    for (size_t i = 0; i < answer.log_probabilities.size(); ++i)
      EXPECT_NEAR(answer.log_probabilities[i], expected.log_probabilities[i], 1e-5) << i;
  }

  formats::Recipe recipe_ = golden_recipe(GetParam());
  models::ModelSource model_ = runtime::open_model(recipe_);
};

// Three whole pages of the beginning, though all four were there at the start.
TEST_P(EnginePages, EqualBeginningsAreReadOnce) {
  const engine::Ids beginning = ids(50, 1);
  std::vector<Request> requests;
  for (const size_t more : {4, 1, 9})
    requests.push_back(request_of(joined(beginning, ids(more, 2 + static_cast<unsigned>(more)))));
  requests.push_back(request_of(ids(20, 9)));
  Inference inference(recipe_, model_, shape_of(4));
  Engine engine(inference);
  const std::vector<Answer> answers = engine.answers(requests);
  EXPECT_EQ(engine.times().known_tokens, 2 * 48);
  EXPECT_EQ(engine.times().prefill_tokens, 54 + 51 + 59 + 20 - 2 * 48);
  for (size_t i = 0; i < requests.size(); ++i) expect_as_alone(answers[i], requests[i]);
  EXPECT_EQ(engine.used_pages(), 0);
}

// At equal chunks and sizes of programs: neither the neighbours nor the pages nor who made the keys
// of the beginning changes a bit. Log-probabilities are made of whole rows of logits.
TEST_P(EnginePages, RowsHaveTheSameBitsWithNeighboursAndSharedBeginnings) {
  plan::InferenceShape shape = shape_of(4);
  shape.page_tokens = kChunk;
  const engine::Ids beginning = ids(3 * kChunk, 40);
  std::vector<Request> requests;
  for (unsigned i = 0; i < 6; ++i)
    requests.push_back(request_of(joined(beginning, ids(3 + i, 41 + i)), 30 - 4 * int64_t{i}));
  std::vector<Answer> expected;
  for (const Request& request : requests) {
    Inference inference(recipe_, model_, shape);
    expected.push_back(Engine(inference).answers({&request, 1}).front());
  }
  Inference inference(recipe_, model_, shape);
  Engine engine(inference);
  std::vector<Answer> answers(requests.size());
  // Each comes when the one before it has been read, so that it has chunks of its own.
  for (size_t i = 0; i < requests.size(); ++i) {
    engine.submit(requests[i], [&, i](const AnswerEvent& event) { add_to(answers[i], event); });
    while (answers[i].ids.empty()) engine.step();
  }
  while (engine.step()) continue;
  EXPECT_EQ(engine.times().known_tokens, 5 * 3 * kChunk);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(answers[i].ids, expected[i].ids) << i;
    EXPECT_EQ(answers[i].log_probabilities, expected[i].log_probabilities) << i;
  }
}

TEST_P(EnginePages, TheNextTurnReadsOnlyWhatIsNew) {
  Inference inference(recipe_, model_, shape_of(1));
  Engine engine(inference);
  const Request first = request_of(ids(30, 3), 20);
  const Answer answer = engine.answers({&first, 1}).front();
  // Of 49 tokens that have keys, three pages.
  const Request second = request_of(joined(joined(first.prompt, answer.ids), ids(11, 4)));
  const int64_t read = engine.times().prefill_tokens;
  const Answer next = engine.answers({&second, 1}).front();
  EXPECT_EQ(engine.times().prefill_tokens - read, 61 - 48);
  expect_as_alone(next, second);
  engine.forget_beginnings();
  engine.answers({&second, 1});
  EXPECT_EQ(engine.times().prefill_tokens - read, 61 - 48 + 61);
}

// Two of the largest at a time, or many small ones, in the order of arrival.
TEST_P(EnginePages, RequestsEnterWhenThereArePages) {
  Inference inference(recipe_, model_, small_pool(model_.config, 6, 2));
  Engine engine(inference);
  std::vector<Request> requests;
  for (unsigned i = 0; i < 3; ++i) requests.push_back(request_of(ids(70, 20 + i), 21));
  for (unsigned i = 0; i < 4; ++i) requests.push_back(request_of(ids(5, 30 + i), 4));
  std::map<RequestId, Answer> heard;
  for (const Request& request : requests)
    engine.submit(request,
                  [&](const AnswerEvent& event) { engine::add_to(heard[event.request], event); });
  engine.step();
  if (has_full(inference)) {
    EXPECT_EQ(engine.running(), 2);
  }
  while (engine.step()) EXPECT_LE(engine.running(), 6);
  for (size_t i = 0; i < requests.size(); ++i)
    expect_as_alone(heard[static_cast<RequestId>(i)], requests[i], 6);
  EXPECT_EQ(engine.used_pages(), 0);
}

// More run than the pool could hold to their ends. Twice the same, to the bit.
TEST_P(EnginePages, WhoIsPreemptedGoesOnWhereItWas) {
  std::vector<Request> requests;
  for (unsigned i = 0; i < 6; ++i) requests.push_back(request_of(ids(9 + i, 50 + i), 60));
  requests[2].sampling = {.temperature = 1.3, .repetition_penalty = 1.1, .seed = 3};
  requests[5].sampling = {.temperature = 1.3, .top_k = 20, .seed = 4};
  std::vector<Answer> first;
  for (const bool again : {false, true}) {
    Inference inference(recipe_, model_, small_pool(model_.config, 6, 2));
    Engine engine(inference.executor(), model_.config, inference.shape(),
                  {.clock = {}, .expected_new_tokens = 4});
    const std::vector<Answer> answers = engine.answers(requests);
    if (has_full(inference)) {
      EXPECT_GE(engine.times().preemptions, 2);
    }
    EXPECT_EQ(engine.used_pages(), 0);
    if (!again) first = answers;
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(answers[i].ids, first[i].ids);
      EXPECT_EQ(answers[i].log_probabilities, first[i].log_probabilities);
      if (!again) expect_as_alone(answers[i], requests[i], 6);
    }
  }
}

// Requests of three conversations come and are taken back by chance while pages run short and
// beginnings are forgotten. Who is not taken back gives its whole answer, and no page is lost.
TEST_P(EnginePages, RandomRequestsLeakNothing) {
  std::vector<Request> known;
  for (unsigned i = 0; i < 9; ++i)
    known.push_back(request_of(joined(ids(14 * (i / 3), i % 3), ids(1 + 3 * (i / 3), 60 + i)), 25));
  std::vector<Answer> expected;
  for (const Request& request : known) expected.push_back(alone(request, 5));
  Inference inference(recipe_, model_, small_pool(model_.config, 5, 1));
  Engine engine(inference.executor(), model_.config, inference.shape(),
                {.clock = {}, .expected_new_tokens = 2});
  std::mt19937 random(11);
  std::map<RequestId, Answer> heard;
  std::map<RequestId, size_t> asked;
  for (int64_t i = 0; i < 600; ++i) {
    const auto draw = random() % 100;
    if (draw < 12) {
      const size_t which = random() % known.size();
      asked[engine.submit(known[which], [&](const AnswerEvent& event) {
        engine::add_to(heard[event.request], event);
      })] = which;
    } else if (draw < 14) {
      engine.cancel(static_cast<RequestId>(random() % (asked.size() + 1)));
    } else if (draw < 15) {
      engine.forget_beginnings();
    } else {
      engine.step();
    }
  }
  while (engine.step()) continue;
  int64_t whole = 0;
  for (const auto& [request, which] : asked) {
    if (heard.at(request).finish == engine::Finish::cancelled) continue;
    ++whole;
    EXPECT_EQ(heard.at(request).ids, expected[which].ids) << request;
  }
  EXPECT_GT(whole, 40);
  EXPECT_GT(engine.times().known_tokens, 100);
  EXPECT_EQ(engine.used_pages(), 0);
  if (has_full(inference)) {
    EXPECT_GT(engine.times().preemptions, 5);
  }
}

TEST_P(EnginePages, WhatCanNeverEnterIsRefused) {
  plan::InferenceShape shape = shape_of(2);
  for (const int64_t pages : plan::pages_of_sequences(shape, models::stack_of(model_.config), 1))
    shape.pages.push_back(std::min<int64_t>(pages, 3));
  Inference inference(recipe_, model_, shape);
  Engine engine(inference);
  if (has_full(inference)) {
    const std::string error = user_error_of([&] { engine.submit(request_of(ids(60, 5), 31), {}); });
    EXPECT_TRUE(contains(error, "a prompt of 60 tokens and 31 new ones need more pages")) << error;
    EXPECT_TRUE(contains(error, "of 16 tokens; shorten the prompt")) << error;
  }
  // The largest that fits has both places' pages.
  const Request fits = request_of(ids(40, 6), 9);
  const Request next = request_of(ids(30, 7), 2);
  const std::vector<Answer> answers = engine.answers(std::vector<Request>{fits, next});
  expect_as_alone(answers[0], fits, 2);
  expect_as_alone(answers[1], next, 2);
}

// Two engines write to the same pages: what one knows is nothing after the other has run.
TEST_P(EnginePages, EnginesOfOneExecutorTakeTurns) {
  Inference inference(recipe_, model_, shape_of(4));
  Engine first(inference);
  Engine second(inference);
  const Request request = request_of(ids(50, 1));
  const Request other = request_of(ids(50, 2));
  first.answers({&request, 1});
  second.answers({&other, 1});
  expect_as_alone(first.answers({&request, 1}).front(), request);
  EXPECT_EQ(first.times().known_tokens, 0);
  first.answers({&request, 1});
  EXPECT_GT(first.times().known_tokens, 0);
  first.submit(request, [](const AnswerEvent&) {});
  first.step();
  second.answers({&other, 1});
  EXPECT_TRUE(dies([&] { first.step(); }, "another engine"));
}

// Recurrent states belong to places: whoever had a place before, whoever runs next to it, and
// whether a request was preempted and read again, its answer is that of a request that is alone.
class EngineStates : public EnginePages {};

TEST_P(EngineStates, AnAnswerIsThatOfTheRequestAlone) {
  std::vector<Request> requests;
  for (unsigned i = 0; i < 7; ++i) requests.push_back(request_of(ids(9 + 3 * i, 70 + i), 40));
  requests.push_back(requests[4]);  // whose beginning is read again
  Inference inference(recipe_, model_, small_pool(model_.config, 4, 2));
  Engine engine(inference.executor(), model_.config, inference.shape(),
                {.clock = {}, .expected_new_tokens = 4});
  for (int round = 0; round < 2; ++round) {
    const std::vector<Answer> answers = engine.answers(requests);
    for (size_t i = 0; i < requests.size(); ++i) expect_as_alone(answers[i], requests[i], 4);
    // Somebody leaves its place in the middle of its answer.
    const RequestId left = engine.submit(request_of(ids(30, 90), 50), [](const AnswerEvent&) {});
    for (int step = 0; step < 7; ++step) engine.step();
    engine.cancel(left);
  }
  EXPECT_GE(engine.times().preemptions, 2);
  EXPECT_EQ(engine.times().known_tokens, 0);
  EXPECT_EQ(engine.used_pages(), 0);
}

TEST_P(EngineStates, NothingIsGuessed) {
  plan::InferenceShape shape = shape_of(2);
  plan::allow_guesses(shape, 3);
  const std::string error = user_error_of([&] { Inference(recipe_, model_, shape); });
  EXPECT_TRUE(contains(error, "prompt_lookup_num_tokens does not go with this model")) << error;
}

INSTANTIATE_TEST_SUITE_P(Models, EngineStates,
                         ::testing::Values("qwen3_5", "qwen3_5_moe", "qwen3_next", "lfm2"),
                         [](const auto& test) { return std::string(test.param); });

INSTANTIATE_TEST_SUITE_P(Models, EnginePages,
                         ::testing::Values("grouped_tied", "mistral", "gemma3"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace snug::testing
