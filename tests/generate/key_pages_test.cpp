// Pages of keys and values: sequences that are longer than their window's pools, logits that depend
// neither on a sequence's pages nor on its neighbours, and programs of several sizes.
#include <set>

#include "../backends/comparison.h"
#include "base/error.h"
#include "engine/cached_forward.h"
#include "golden_recipe.h"
#include "training_logits.h"

namespace snug::testing {
namespace {

using engine::CachedForward;
using engine::Inference;
using engine::SequencePart;

constexpr int32_t kPage = 16;
constexpr int64_t kCapacity = 90;
constexpr int64_t kChunk = 12;

plan::InferenceShape small_pages(int64_t sequences) {
  return {.sequences = sequences,
          .capacity = kCapacity,
          .prefill_tokens = kChunk,
          .page_tokens = kPage};
}

void append_in_chunks(CachedForward& forward, int64_t sequence, std::span<const int32_t> ids) {
  for (size_t done = 0; done < ids.size();) {
    const size_t count = std::min<size_t>(ids.size() - done, kChunk);
    const SequencePart part{sequence, ids.subspan(done, count)};
    forward.prefill({&part, 1});
    done += count;
  }
}

std::vector<float> copied(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

class KeyPages : public ::testing::TestWithParam<const char*> {};

// A sequence of 90 tokens, in windows that three pages of 16 tokens hold with a chunk.
TEST_P(KeyPages, HoldSequencesLongerThanAWindowsPools) {
  const formats::Recipe recipe = golden_recipe(GetParam());
  const models::ModelSource model = runtime::open_model(recipe);
  const engine::Ids ids = random_ids(kCapacity, model.config.vocab_size, 7);
  const std::vector<float> expected =
      training_logits(GetParam(), ids, {static_cast<int32_t>(kCapacity)});
  const auto vocab = static_cast<size_t>(model.config.vocab_size);
  Inference inference(recipe, model, small_pages(2));
  bool has_window = false;
  for (const models::KeyPool& pool : inference.executor().job().key_pools) {
    has_window |= pool.group.window > 0;
    EXPECT_EQ(pool.pages, pool.group.window > 0 ? 2 * 3 : 2 * 6) << pool.group.window;
  }
  EXPECT_EQ(has_window, std::string_view(GetParam()) != "basic");
  CachedForward forward(inference.executor(), inference.shape());
  for (const size_t prompt : {1, 40, 71}) {
    forward.release_all();
    append_in_chunks(forward, 1, std::span(ids).first(prompt));
    for (size_t token = prompt; token < ids.size(); ++token) {
      EXPECT_LT(relative_error(forward.logits(1),
                               std::span(expected).subspan((token - 1) * vocab, vocab)),
                1e-5)
          << prompt << " " << token;
      forward.decode(engine::Ids{CachedForward::kIdle, ids[token]});
    }
  }
}

// Logits of a sequence that is read in chunks and goes on token by token, in a place, with or
// without neighbours that enter, go on and leave meanwhile.
std::vector<std::vector<float>> logits_in(Inference& inference, const engine::Ids& ids,
                                          int64_t place, bool has_neighbours) {
  constexpr size_t kPrompt = 30;
  const int64_t vocab = inference.model().vocab_size;
  const int64_t sequences = inference.shape().sequences;
  const auto of_others = [&](int64_t other, size_t count) {
    return random_ids(count, vocab, static_cast<unsigned>(20 + other));
  };
  CachedForward forward(inference.executor(), inference.shape());
  std::vector<std::vector<float>> logits;
  for (size_t done = 0; done < kPrompt; done += 5) {
    std::vector<engine::Ids> others;
    for (int64_t other = 0; other < sequences; ++other) others.push_back(of_others(other, 2));
    std::vector<SequencePart> parts;
    for (int64_t other = 0; other < sequences; ++other)
      if (other == place)
        parts.push_back({place, std::span(ids).subspan(done, 5)});
      else if (has_neighbours)
        parts.push_back({other, others[static_cast<size_t>(other)]});
    forward.prefill(parts);
    logits.push_back(copied(forward.logits(place)));
  }
  for (size_t token = kPrompt; token < ids.size(); ++token) {
    engine::Ids next(static_cast<size_t>(sequences), CachedForward::kIdle);
    if (has_neighbours && token % 3 > 0)
      for (int32_t& id : next) id = static_cast<int32_t>(token % static_cast<size_t>(vocab));
    if (has_neighbours && token == 50)
      for (int64_t other = 0; other < sequences; ++other)
        if (other != place) forward.release(other);
    next[static_cast<size_t>(place)] = ids[token];
    forward.decode(next);
    logits.push_back(copied(forward.logits(place)));
  }
  return logits;
}

TEST_P(KeyPages, LogitsDependNeitherOnThemNorOnNeighbours) {
  for (const std::string type : {"fp32", "bf16"}) {
    if (type == "bf16" && !backends::test::cpu_must_multiply_bf16()) continue;
    const formats::Recipe recipe = golden_recipe(GetParam(), {"compute_dtype=" + type});
    const models::ModelSource model = runtime::open_model(recipe);
    const engine::Ids ids = random_ids(70, model.config.vocab_size, 8);
    Inference inference(recipe, model, small_pages(4));
    const auto expected = logits_in(inference, ids, 0, false);
    for (const int64_t place : {1, 3}) EXPECT_EQ(logits_in(inference, ids, place, false), expected);
    for (const int64_t place : {0, 2}) EXPECT_EQ(logits_in(inference, ids, place, true), expected);
  }
}

// The names of the programs that have run.
class ProgramsSeen final : public runtime::Executor::Observer {
 public:
  void before(const program::Program& program, size_t) override { names.insert(program.name); }
  void after(const program::Program&, size_t) override {}
  std::set<std::string> names;
};

// The same tokens by the programs of all sizes.
TEST_P(KeyPages, ProgramsOfAllSizesAgree) {
  for (const std::string type : {"fp32", "bf16"}) {
    if (type == "bf16" && !backends::test::cpu_must_multiply_bf16()) continue;
    const formats::Recipe recipe = golden_recipe(GetParam(), {"compute_dtype=" + type});
    const models::ModelSource model = runtime::open_model(recipe);
    const engine::Ids ids = random_ids(50, model.config.vocab_size, 9);
    plan::InferenceShape shape = small_pages(4);
    shape.prefill_tokens = 48;
    shape.prefill_sizes = {12, 24, 48, 128};
    shape.decode_sizes = {1, 2, 8};
    Inference inference(recipe, model, shape);
    std::vector<std::vector<float>> of_one_size;
    for (const bool by_size : {false, true}) {
      plan::InferenceShape used = shape;
      if (!by_size) used.prefill_sizes = used.decode_sizes = {};
      CachedForward forward(inference.executor(), used);
      ProgramsSeen programs;
      inference.executor().set_observer(&programs);
      std::vector<std::vector<float>> logits;
      size_t done = 0;
      for (const size_t count : {10, 20, 17}) {
        const SequencePart part{2, std::span(ids).subspan(done, count)};
        forward.prefill({&part, 1});
        logits.push_back(copied(forward.logits(2)));
        done += count;
      }
      for (; done < ids.size(); ++done) {
        forward.decode(engine::Ids{CachedForward::kIdle, CachedForward::kIdle, ids[done],
                                   CachedForward::kIdle});
        logits.push_back(copied(forward.logits(2)));
      }
      inference.executor().set_observer(nullptr);
      EXPECT_EQ(programs.names,
                by_size ? (std::set<std::string>{"prefill.12", "prefill.24", "decode.1"})
                        : (std::set<std::string>{"prefill", "decode"}));
      if (!by_size) of_one_size = logits;
      for (size_t i = 0; i < logits.size(); ++i)
        EXPECT_LT(relative_error(logits[i], of_one_size[i]), type == "fp32" ? 1e-5 : 2e-2) << i;
    }
  }
}

// A beginning that is cached already is not read again, and what follows it is as if it had been.
TEST_P(KeyPages, EqualBeginningsAreShared) {
  const formats::Recipe recipe = golden_recipe(GetParam());
  const models::ModelSource model = runtime::open_model(recipe);
  const engine::Ids ids = random_ids(kCapacity, model.config.vocab_size, 10);
  Inference inference(recipe, model, small_pages(3));
  CachedForward forward(inference.executor(), inference.shape());
  const auto enter = [&](int64_t sequence, size_t tokens) {
    return forward.enter(sequence,
                         {.prompt = std::span(ids).first(tokens), .promised_tokens = kCapacity});
  };
  ASSERT_EQ(enter(0, 60), 0);
  append_in_chunks(forward, 0, std::span(ids).first(60));
  const std::vector<float> expected = copied(forward.logits(0));
  // Three whole pages, of which a window keeps those that the next token sees.
  EXPECT_EQ(enter(1, 60), 48);
  EXPECT_EQ(forward.length(1), 48);
  append_in_chunks(forward, 1, std::span(ids).subspan(48, 12));
  EXPECT_LT(relative_error(forward.logits(1), expected), 1e-5);
  forward.release_all();
  EXPECT_EQ(enter(2, 60), 48);  // though both have left
  forward.release_all();
  forward.forget_beginnings();
  EXPECT_EQ(enter(2, 60), 0);
}

// A pool for one long sequence holds several short ones, and none enters that it cannot hold.
TEST_P(KeyPages, AreSharedOutBySequencesOfAnyLength) {
  const formats::Recipe recipe = golden_recipe(GetParam());
  const models::ModelSource model = runtime::open_model(recipe);
  const engine::Ids ids = random_ids(kCapacity, model.config.vocab_size, 11);
  plan::InferenceShape shape = small_pages(4);
  shape.pages = plan::pages_of_sequences(shape, models::stack_of(model.config), 1);
  Inference inference(recipe, model, shape);
  CachedForward forward(inference.executor(), inference.shape());
  const auto enter = [&](int64_t sequence, int64_t tokens) {
    return forward.enter(sequence, {.prompt = std::span(ids).first(static_cast<size_t>(tokens)),
                                    .promised_tokens = tokens,
                                    .shares = false});
  };
  ASSERT_EQ(enter(0, kCapacity), 0);
  EXPECT_EQ(enter(1, 1), std::nullopt);
  const SequencePart uninvited{2, std::span(ids).first(4)};
  EXPECT_THROW(forward.prefill({&uninvited, 1}), base::UserError);
  EXPECT_EQ(forward.length(2), 0);
  forward.release(0);
  for (const int64_t sequence : {0, 1, 3}) ASSERT_EQ(enter(sequence, kPage), 0);
  std::vector<SequencePart> parts;
  for (const int64_t sequence : {0, 1, 3}) parts.push_back({sequence, std::span(ids).first(4)});
  forward.prefill(parts);
  EXPECT_EQ(copied(forward.logits(0)), copied(forward.logits(3)));
  for (int token = 4; token < kPage; ++token) forward.decode(engine::Ids{-1, 3, -1, 3});
  EXPECT_THROW(forward.decode(engine::Ids{-1, 3, -1, -1}), base::UserError);
  EXPECT_EQ(forward.length(1), kPage);
}

INSTANTIATE_TEST_SUITE_P(Models, KeyPages,
                         ::testing::Values("basic", "mistral", "qwen2", "gemma3", "gpt_oss", "phi3",
                                           "gemma4", "gemma4_sharing"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace snug::testing
