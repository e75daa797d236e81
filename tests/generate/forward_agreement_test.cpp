// Prefill and decode against the training forward pass, which has no cache: every row of logits
// within 1e-5 in fp32, wherever the prompt is cut.
#include <numeric>

#include "../backends/comparison.h"
#include "../base/temporary_folder.h"
#include "../train/golden_models.h"
#include "engine/cached_forward.h"
#include "formats/recipe/recipe.h"
#include "golden_recipe.h"
#include "program/ir/tensor_names.h"
#include "training_logits.h"

namespace snug::testing {
namespace {

constexpr int64_t kTokens = 21;
constexpr int64_t kChunk = 8;

class Agreement : public ::testing::TestWithParam<const char*> {};

// A prompt of `prompt` tokens in chunks, then one token at a time, in the second of two sequences.
TEST_P(Agreement, PrefillAndDecode) {
  const formats::Recipe recipe = golden_recipe(GetParam());
  const models::ModelSource model = runtime::open_model(recipe);
  const auto vocab = static_cast<size_t>(model.config.vocab_size);
  const engine::Ids ids = random_ids(kTokens, model.config.vocab_size, 7);
  const std::vector<float> expected = training_logits(GetParam(), ids, {kTokens});
  const auto expected_row = [&](size_t token) {
    return std::span(expected).subspan(token * vocab, vocab);
  };
  engine::Inference inference(recipe, model,
                              {.sequences = 2, .capacity = kTokens, .prefill_tokens = kChunk});
  engine::CachedForward forward(inference.executor(), inference.shape());
  ASSERT_EQ(forward.prefill_tokens(), kChunk);
  for (const size_t prompt : {1, 7, 8, 9, 16, 17, 20}) {
    forward.release_all();
    for (size_t done = 0; done < prompt; done += kChunk) {
      const size_t count = std::min<size_t>(kChunk, prompt - done);
      const engine::SequencePart part{1, std::span(ids).subspan(done, count)};
      forward.prefill({&part, 1});
      EXPECT_LT(relative_error(forward.logits(1), expected_row(done + count - 1)), 1e-5)
          << "prefill of " << prompt << " up to " << done + count;
    }
    for (size_t token = prompt; token < ids.size(); ++token) {
      forward.decode(engine::Ids{engine::CachedForward::kIdle, ids[token]});
      EXPECT_LT(relative_error(forward.logits(1), expected_row(token)), 1e-5)
          << "decode of token " << token << " after a prompt of " << prompt;
    }
    EXPECT_EQ(forward.length(0), 0);
    EXPECT_EQ(forward.length(1), kTokens);
  }
}

// What the host reads is what an operation of the program has copied, in planned memory.
TEST(Logits, AreCopiedToTheHostByTheProgram) {
  const formats::Recipe recipe = golden_recipe("basic");
  const models::ModelSource model = runtime::open_model(recipe);
  const engine::Ids ids = random_ids(8, model.config.vocab_size, 7);
  for (const int64_t candidates : {int64_t{0}, int64_t{3}}) {
    engine::Inference inference(recipe, model,
                                {.capacity = 8, .prefill_tokens = 8, .candidates = candidates});
    for (const auto name : {program::ProgramName::prefill, program::ProgramName::decode}) {
      const program::Program& program = *inference.executor().job().find(name);
      const auto id = program.find(program::host_name(own_name(name, program::kLogitsName)));
      ASSERT_EQ(id == program::kNone, candidates > 0);
      if (candidates > 0) continue;
      EXPECT_EQ(program.operations.back().writes, std::vector<program::TensorId>{id});
      EXPECT_EQ(program.operations.back().kind(), program::Kind::copy);
      EXPECT_EQ(program.tensor(id).space, program::Space::pinned_host);
    }
    if (candidates > 0) continue;
    engine::CachedForward forward(inference.executor(), inference.shape());
    const engine::SequencePart part{0, ids};
    forward.prefill({&part, 1});
    const auto name = program::ProgramName::prefill;
    const backends::Buffer& copied =
        inference.executor().tensor(name, program::host_name(own_name(name, program::kLogitsName)));
    EXPECT_EQ(forward.logits(0).data(), copied.as<const float>());
  }
}

// A document's logits are the same in a row with others, be it shorter or longer than the model's
// window.
TEST_P(Agreement, PackedDocumentsAreAlone) {
  const models::ModelConfig config =
      models::find_model(kGoldens + std::string(GetParam()) + "/model").config;
  const std::vector<int32_t> lengths{17, 1, 5, 31, 12};
  const int32_t total = std::accumulate(lengths.begin(), lengths.end(), 0);
  const engine::Ids ids = random_ids(static_cast<size_t>(total), config.vocab_size, 8);
  const std::vector<float> packed = training_logits(GetParam(), ids, lengths);
  const auto vocab = static_cast<size_t>(config.vocab_size);
  size_t begin = 0;
  for (const int32_t length : lengths) {
    // The row keeps its length, so that longrope's factors stay those of the packed row.
    const auto first = ids.begin() + static_cast<std::ptrdiff_t>(begin);
    engine::Ids alone(first, first + length);
    alone.resize(ids.size(), 0);
    const std::vector<float> expected =
        training_logits(GetParam(), alone, {length, total - length});
    const size_t count = static_cast<size_t>(length) * vocab;
    EXPECT_LT(relative_error(std::span(packed).subspan(begin * vocab, count),
                             std::span(expected).first(count)),
              1e-6)
        << "a document of " << length << " tokens from " << begin << " on";
    begin += static_cast<size_t>(length);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Agreement, ::testing::ValuesIn(test::kGoldenModels),
                         [](const auto& test) { return std::string(test.param); });

// In 4 bits a token alone is multiplied by the codes as they are, many by values made of them.
class AgreementInNf4 : public ::testing::TestWithParam<const char*> {};

TEST_P(AgreementInNf4, DecodesAsItPrefills) {
  const bool bf16 = GetParam() == std::string_view("bf16");
  if (bf16 && !backends::test::cpu_must_multiply_bf16())
    GTEST_SKIP() << "the processor does not multiply bf16";
  const TemporaryFolder folder;
  folder.write("shape/config.json", R"({
      "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128,
      "intermediate_size": 320, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 258, "max_position_embeddings": 256,
      "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "initializer_range": 0.1,
      "tie_word_embeddings": false, "hidden_act": "silu"})");
  const formats::Recipe recipe =
      recipe_of({"model=" + (folder / "shape").string(), "init=random", "load_in_4bit=true",
                 "compute_dtype=" + std::string(GetParam()), "threads=2"});
  const models::ModelSource model = runtime::open_model(recipe);
  const engine::Ids ids = random_ids(kTokens, model.config.vocab_size, 9);
  engine::Inference inference(recipe, model,
                              {.sequences = 1, .capacity = kTokens, .prefill_tokens = kTokens});
  engine::CachedForward forward(inference.executor(), inference.shape());
  for (const size_t token : {size_t{5}, size_t{16}, ids.size() - 1}) {
    forward.release_all();
    const engine::SequencePart all{0, std::span(ids).first(token + 1)};
    forward.prefill({&all, 1});
    const auto row = forward.logits(0);
    const std::vector<float> expected(row.begin(), row.end());
    forward.release_all();
    const engine::SequencePart before{0, std::span(ids).first(token)};
    forward.prefill({&before, 1});
    forward.decode(engine::Ids{ids[token]});
    EXPECT_LT(relative_error(forward.logits(0), expected), bf16 ? 2e-2 : 1e-5) << token;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AgreementInNf4, ::testing::Values("fp32", "bf16"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace snug::testing
