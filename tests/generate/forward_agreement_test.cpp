// Prefill and decode against the training forward pass, which has no cache: every row of logits
// within 1e-5 in fp32, wherever the prompt is cut.
#include "generate/cached_forward.h"
#include "golden_recipe.h"
#include "models/forward.h"
#include "passes/pipeline.h"
#include "runtime/load_weights.h"

namespace snug::testing {
namespace {

constexpr int64_t kTokens = 21;
constexpr int64_t kChunk = 8;

// Logits (tokens, vocab) of one document, by the program that training differentiates.
std::vector<float> training_logits(const std::string& name, const Ids& ids) {
  const models::ModelSource model = models::find_model(kGoldens + name + "/model");
  const auto tokens = static_cast<int64_t>(ids.size());
  const auto backend = backends::open_backend("cpu", {.threads = 2, .device_memory_bytes = 0});
  passes::Pipeline pipeline(*backend);
  const plan::Job load = plan::plan_inference(
      {.model = model.config, .lora = {}, .capacity = 1, .prefill_tokens = 1}, *backend);
  std::vector<program::Program> programs{*load.find("load")};
  programs.push_back(pipeline.plain(models::forward(model.config, {.program_name = "forward",
                                                                   .input_prefix = "",
                                                                   .tokens = tokens,
                                                                   .segments = 1,
                                                                   .head = models::Head::logits,
                                                                   .outputs = tokens})));
  const plan::Job job = plan::make_job(std::move(programs), *backend);
  runtime::Executor executor(job, *backend);
  runtime::load_weights(model.folder, model.config, executor);
  std::copy(ids.begin(), ids.end(), executor.tensor("tokens").as<int32_t>());
  for (const char* count : {"positions", "output_rows"})
    for (int32_t i = 0; i < static_cast<int32_t>(tokens); ++i)
      executor.tensor(count).as<int32_t>()[i] = i;
  executor.tensor("query_bounds").as<int32_t>()[0] = 0;
  executor.tensor("query_bounds").as<int32_t>()[1] = static_cast<int32_t>(tokens);
  executor.run("forward");
  const backends::Buffer& logits = executor.tensor("logits");
  return {logits.as<float>(), logits.as<float>() + logits.elements()};
}

class Agreement : public ::testing::TestWithParam<const char*> {};

// A prompt of `prompt` tokens in chunks, then one token at a time, in the second of two sequences.
TEST_P(Agreement, PrefillAndDecode) {
  const formats::Recipe recipe = golden_recipe(GetParam());
  const models::ModelSource model = generate::open_model(recipe);
  const auto vocab = static_cast<size_t>(model.config.vocab_size);
  const Ids ids = random_ids(kTokens, model.config.vocab_size, 7);
  const std::vector<float> expected = training_logits(GetParam(), ids);
  const auto expected_row = [&](size_t token) {
    return std::span(expected).subspan(token * vocab, vocab);
  };
  generate::Inference inference(recipe, model,
                                {.sequences = 2, .capacity = kTokens, .prefill_tokens = kChunk});
  generate::CachedForward forward(inference);
  ASSERT_EQ(forward.prefill_tokens(), kChunk);
  for (const size_t prompt : {1, 7, 8, 9, 16, 17, 20}) {
    forward.clear();
    for (size_t done = 0; done < prompt; done += kChunk) {
      const size_t count = std::min<size_t>(kChunk, prompt - done);
      const generate::Stretch stretch{1, std::span(ids).subspan(done, count)};
      forward.prefill({&stretch, 1});
      EXPECT_LT(relative_error(forward.logits(1), expected_row(done + count - 1)), 1e-5)
          << "prefill of " << prompt << " up to " << done + count;
    }
    for (size_t token = prompt; token < ids.size(); ++token) {
      forward.decode(Ids{generate::CachedForward::kIdle, ids[token]});
      EXPECT_LT(relative_error(forward.logits(1), expected_row(token)), 1e-5)
          << "decode of token " << token << " after a prompt of " << prompt;
    }
    EXPECT_EQ(forward.length(0), 0);
    EXPECT_EQ(forward.length(1), kTokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Agreement,
                         ::testing::Values("basic", "grouped_tied", "biases", "head_dim",
                                           "rope_llama3", "rope_linear", "mistral", "qwen2"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace snug::testing
