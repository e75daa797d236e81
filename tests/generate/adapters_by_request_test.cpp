// Adapters that requests choose from: each request of a mix has what an engine has that loads its
// adapter alone, and what PEFT gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../base/captured_stream.h"
#include "base/json.h"
#include "base/temporary_folder.h"
#include "engine/cached_forward.h"
#include "engine/engine.h"
#include "formats/recipe/recipe.h"
#include "generate/score.h"
#include "golden_recipe.h"
#include "runtime/loading/load_weights.h"

namespace snug::testing {
namespace {

using engine::Answer;
using engine::Request;

const std::string kAll = kGoldens + "lora_all_linear/adapter";
const std::string kSome = kGoldens + "lora_qv_rslora/adapter";
const std::string kForms = kGoldens + "adapter_forms/";

constexpr plan::InferenceShape kShape{.sequences = 4, .capacity = 64, .prefill_tokens = 48};

// In the mix these are next to one another, in an order that no slot has.
std::vector<Request> mixed_requests() {
  std::vector<Request> requests;
  for (const char* adapter : {"some", "", "all", "some", "all", ""})
    requests.push_back(
        {.prompt = random_ids(5 + 3 * requests.size(), 137, static_cast<unsigned>(requests.size())),
         .max_new_tokens = 6,
         .adapter = adapter,
         .log_probabilities = 0});
  return requests;
}

std::vector<Answer> answers_of(std::vector<std::string> words, std::vector<Request> requests) {
  words.emplace_back("threads=1");
  const formats::Recipe recipe = golden_recipe("grouped_tied", std::move(words));
  engine::Inference inference(recipe, runtime::open_model(recipe), kShape);
  return engine::Engine(inference).answers(requests);
}

// With the adapter of each request, and no other, in the engine.
std::vector<Answer> answers_alone(const std::vector<std::string>& words,
                                  const std::vector<Request>& requests) {
  std::vector<Answer> answers(requests.size());
  for (const std::string adapter : {"", "all", "some"}) {
    std::vector<std::string> of_one = words;
    if (!adapter.empty()) of_one.push_back("adapter=" + (adapter == "all" ? kAll : kSome));
    std::vector<Request> own;
    for (Request request : requests) {
      if (request.adapter != adapter) continue;
      request.adapter.clear();
      own.push_back(std::move(request));
    }
    const std::vector<Answer> its = answers_of(of_one, own);
    for (size_t i = 0, next = 0; i < requests.size(); ++i)
      if (requests[i].adapter == adapter) answers[i] = its[next++];
  }
  return answers;
}

const std::string kAdapters = "adapters=all=" + kAll + ",some=" + kSome;

struct BaseCase {
  std::string name;
  std::vector<std::string> words;
  double largest;  // difference of log-probabilities
  double mean;
};

class AdaptersByRequest : public ::testing::TestWithParam<BaseCase> {};

TEST_P(AdaptersByRequest, GiveWhatEachGivesAlone) {
  const std::vector<Request> requests = mixed_requests();
  std::vector<std::string> mixed_words = GetParam().words;
  mixed_words.push_back(kAdapters);
  const std::vector<Answer> mixed = answers_of(mixed_words, requests);
  const std::vector<Answer> alone = answers_alone(GetParam().words, requests);
  double sum = 0;
  double largest = 0;
  size_t count = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(mixed[i].ids, alone[i].ids) << i;
    ASSERT_EQ(mixed[i].log_probabilities.size(), alone[i].log_probabilities.size()) << i;
    for (size_t t = 0; t < alone[i].log_probabilities.size(); ++t, ++count) {
      const double difference =
          std::abs(mixed[i].log_probabilities[t] - alone[i].log_probabilities[t]);
      sum += difference;
      largest = std::max(largest, difference);
    }
  }
  EXPECT_LE(largest, GetParam().largest);
  EXPECT_LE(sum / static_cast<double>(count), GetParam().mean);
}

INSTANTIATE_TEST_SUITE_P(Bases, AdaptersByRequest,
                         ::testing::Values(BaseCase{"fp32", {}, 1e-5, 1e-5},
                                           BaseCase{"bf16", {"compute_dtype=bf16"}, 5e-2, 1e-2},
                                           BaseCase{"nf4", {"load_in_4bit=true"}, 1e-5, 1e-5}),
                         [](const auto& test) { return test.param.name; });

// Bit for bit, with the same programs.
TEST(AdaptersByRequest, DoNotDependOnTheirNeighbours) {
  const std::vector<Request> requests = mixed_requests();
  const formats::Recipe recipe = golden_recipe("grouped_tied", {"threads=1", kAdapters});
  engine::Inference inference(recipe, runtime::open_model(recipe), kShape);
  const std::vector<Answer> mixed = engine::Engine(inference).answers(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer alone = engine::Engine(inference).answers({&requests[i], 1}).front();
    EXPECT_EQ(mixed[i].log_probabilities, alone.log_probabilities) << i;
  }
}

// Keys are computed with an adapter, so that one's beginning is no other's.
TEST(AdaptersByRequest, ShareBeginningsWithTheirOwnAlone) {
  const formats::Recipe recipe = golden_recipe("grouped_tied", {"threads=1", kAdapters});
  engine::Inference inference(
      recipe, runtime::open_model(recipe),
      {.sequences = 4, .capacity = 64, .prefill_tokens = 48, .page_tokens = 4});
  engine::Engine engine(inference);
  const auto answer = [&](engine::Engine& by, const char* adapter) {
    const Request request{.prompt = random_ids(19, 137, 7),
                          .max_new_tokens = 3,
                          .adapter = adapter,
                          .log_probabilities = 0};
    return by.answers({&request, 1}).front().log_probabilities;
  };
  for (const char* adapter : {"all", "some", ""}) {
    engine::Engine fresh(inference);
    const std::vector<double> expected = answer(fresh, adapter);
    const int64_t known = engine.times().known_tokens;
    const std::vector<double> first = answer(engine, adapter);
    EXPECT_EQ(engine.times().known_tokens, known) << adapter;
    const std::vector<double> second = answer(engine, adapter);
    EXPECT_EQ(engine.times().known_tokens, known + 16) << adapter;
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(first[i], expected[i], 1e-5) << adapter;
      EXPECT_NEAR(second[i], expected[i], 1e-5) << adapter;
    }
  }
}

double log_probability(std::span<const float> logits, int32_t id) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit});
  return logits[static_cast<size_t>(id)] - std::log(sum);
}

// Ranks and scales by patterns, rank-stabilised ones, and names with what a wrapper adds, in one
// batch.
TEST(AdaptersByRequest, GivePeftsLogProbabilities) {
  const nlohmann::json expected = base::read_json_file(kForms + "expected.json");
  const std::vector<std::string> forms{"patterns", "patterns_rslora", "wrapped_multimodal"};
  std::string adapters = "adapters=";
  for (const std::string& form : forms) adapters += form + "=" + kForms + form + ",";
  adapters.pop_back();
  const formats::Recipe recipe = golden_recipe("mistral", {"threads=1", adapters});
  const auto ids = expected.at(forms[0]).at("ids").get<std::vector<int32_t>>();
  const auto tokens = std::ssize(ids);
  const plan::InferenceShape shape{.sequences = std::ssize(forms),
                                   .capacity = tokens,
                                   .prefill_tokens = tokens * std::ssize(forms),
                                   .all_logits = true};
  engine::Inference inference(recipe, runtime::open_model(recipe), shape);
  engine::CachedForward forward(inference.executor(), inference.shape());
  std::vector<engine::SequencePart> parts;
  for (int64_t i = 0; i < std::ssize(forms); ++i)
    parts.push_back({.sequence = i, .ids = ids, .adapter = {.adapter = i}});
  forward.prefill(parts);
  for (size_t i = 0; i < forms.size(); ++i) {
    ASSERT_EQ(expected.at(forms[i]).at("ids").get<std::vector<int32_t>>(), ids);
    const auto wanted = expected.at(forms[i]).at("logprobs").get<std::vector<double>>();
    for (size_t t = 0; t < wanted.size(); ++t)
      EXPECT_NEAR(log_probability(
                      forward.logits(static_cast<int64_t>(i) * tokens + static_cast<int64_t>(t)),
                      ids[t + 1]),
                  wanted[t], 2e-5)
          << forms[i] << ' ' << t;
  }
}

std::string refusal_of(const std::string& model, std::vector<std::string> words) {
  const formats::Recipe recipe = golden_recipe(model, std::move(words));
  return user_error_of([&] {
    const engine::Inference inference(recipe, runtime::open_model(recipe),
                                      {.sequences = 1, .capacity = 16, .prefill_tokens = 16});
  });
}

void expect_refusal(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

// A mix that has an effect: the same prompt is answered with each adapter.
TEST(AdaptersByRequest, ChangeAnAnswer) {
  std::vector<Request> requests;
  for (const char* adapter : {"", "all", "some"})
    requests.push_back({.prompt = random_ids(9, 137, 5),
                        .max_new_tokens = 4,
                        .adapter = adapter,
                        .log_probabilities = 0});
  const std::vector<Answer> answers = answers_of({kAdapters}, requests);
  const auto first = [&](size_t i) { return answers[i].log_probabilities.front(); };
  EXPECT_GT(std::abs(first(0) - first(1)), 1e-3);
  EXPECT_GT(std::abs(first(0) - first(2)), 1e-3);
  EXPECT_GT(std::abs(first(1) - first(2)), 1e-3);
}

// Each by the adapter's name, with what to do.
TEST(AdaptersByRequest, RefuseWhatOnlyOneAloneCanHave) {
  const std::map<std::string, std::pair<std::string, std::string>> forms{
      {"patterns_dora", {"mistral", "is DoRA"}},
      {"head", {"mistral", "changes the head 'lm_head'"}},
      {"patterns_embedding", {"qwen2", "changes the embedding 'model.embed_tokens'"}},
      {"saved", {"mistral", "(modules_to_save)"}},
      {"tables", {"mistral", "(saved next to it by PEFT)"}},
      {"rows", {"mistral", "(trainable_token_indices)"}}};
  for (const auto& [form, expected] : forms) {
    const auto& [model, why] = expected;
    const std::string folder = kForms + form;
    expect_refusal(
        refusal_of(model, {"adapters=x:" + folder}),
        {"'adapters' name 'x', " + folder, why, "Load it alone, with adapter=" + folder});
  }
  const std::string prompts = kGoldens + "prompt_layer/adapter";
  expect_refusal(refusal_of("grouped_tied", {"adapters=x=" + prompts}),
                 {"name 'x'", "is a LLaMA-Adapter", "adapter=" + prompts});
}

TEST(AdaptersByRequest, RefuseWhatDoesNotFit) {
  expect_refusal(refusal_of("mistral", {"adapters=x=" + kAll}),
                 {kAll, "is it an adapter of this model?"});
  expect_refusal(refusal_of("grouped_tied", {kAdapters, "max_adapters=1"}),
                 {"'max_adapters' is 1, and adapters names 2; give 2 at least"});
  expect_refusal(refusal_of("grouped_tied", {"adapters=x=" + kAll, "max_adapter_rank=2"}),
                 {"'max_adapter_rank' is 2, but the adapter 'x'", "has rank 4", "give 4 at least"});
  expect_refusal(refusal_of("grouped_tied", {"adapters=x=" + kAll, "adapter=" + kAll}),
                 {"'adapters'", "give one of the two"});
  expect_refusal(refusal_of("grouped_tied", {"adapters=" + kAll + "," + kSome}),
                 {"give NAME:FOLDER"});
  expect_refusal(refusal_of("grouped_tied", {"adapters=x=" + kAll + ",x=" + kSome}),
                 {"names 'x' twice"});
  expect_refusal(refusal_of("grouped_tied", {"max_adapters=2"}), {"'max_adapter_rank' is missing"});
  expect_refusal(refusal_of("t5", {"max_adapters=2", "max_adapter_rank=4"}), {"has an encoder"});
}

TEST(AdaptersByRequest, RefuseUnknownNames) {
  const formats::Recipe recipe = golden_recipe("grouped_tied", {"threads=1", kAdapters});
  engine::Inference inference(recipe, runtime::open_model(recipe), kShape);
  engine::Engine engine(inference);
  EXPECT_EQ(user_error_of([&] {
              engine.submit({.prompt = {1}, .max_new_tokens = 1, .adapter = "law"},
                            [](const engine::AnswerEvent& /*event*/) {});
            }),
            "there is no adapter 'law'; there are all, some");
}

// Empty places, which later adapters would fill, change nothing but the memory.
TEST(AdaptersByRequest, HaveTheirPlacesPlannedToTheByte) {
  const auto adapter_bytes = [](std::vector<std::string> words) {
    const formats::Recipe recipe = golden_recipe("grouped_tied", std::move(words));
    const engine::Inference inference(recipe, runtime::open_model(recipe), kShape);
    return inference.arena_bytes();
  };
  const int64_t two = adapter_bytes({kAdapters});
  const int64_t four = adapter_bytes({kAdapters, "max_adapters=4"});
  EXPECT_GT(four, two);
}

}  // namespace
}  // namespace snug::testing
