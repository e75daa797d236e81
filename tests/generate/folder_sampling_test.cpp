// Settings of sampling in generation_config.json, as transformers takes them, and where they count.
#include "generate/folder_sampling.h"

#include <nlohmann/json.hpp>

#include "../base/captured_stream.h"
#include "base/temporary_folder.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

using generate::sampling_of_file;
using generate::with_folder_sampling;

std::optional<engine::SamplingOptions> sampling_of(const std::string& json) {
  const TemporaryFolder folder;
  return sampling_of_file(folder.write("generation_config.json", json));
}

TEST(FolderSampling, IsWhatTransformersTakes) {
  const auto drawn = sampling_of(
      R"({"do_sample": true, "temperature": 0.6, "top_p": 0.95, "top_k": null, "eos_token_id": 2})");
  ASSERT_TRUE(drawn);
  EXPECT_EQ(drawn->temperature, 0.6);
  EXPECT_EQ(drawn->top_p, 0.95);
  EXPECT_EQ(drawn->top_k, 50);
  EXPECT_EQ(drawn->repetition_penalty, 1);
  const auto usual = sampling_of(R"({"do_sample": true, "top_k": 0, "min_p": 0.1})");
  EXPECT_EQ(usual->temperature, 1);
  EXPECT_EQ(usual->top_k, 0);
  EXPECT_EQ(usual->min_p, 0.1);
}

TEST(FolderSampling, WithoutDoSampleTheLikeliestTokenIsTaken) {
  for (const char* json : {R"({"temperature": 0.6, "top_k": 20, "repetition_penalty": 1.05})",
                           R"({"do_sample": false, "repetition_penalty": 1.05})"}) {
    const auto greedy = sampling_of(json);
    EXPECT_EQ(greedy->temperature, 0) << json;
    EXPECT_EQ(greedy->top_k, 0) << json;
    EXPECT_EQ(greedy->repetition_penalty, 1.05) << json;
  }
  EXPECT_FALSE(sampling_of(R"({"eos_token_id": 2, "max_new_tokens": 16})"));
  EXPECT_FALSE(sampling_of_file("no/such/generation_config.json"));
}

TEST(FolderSampling, SaysWhatMeansNothing) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"do_sample": true, "temperature": -1})", "temperature is -1; it must be 0 or more"},
      {R"({"do_sample": true, "top_p": 1.5})", "top_p is 1.5"},
      {R"({"do_sample": "yes"})", "do_sample"}};
  for (const auto& [json, part] : cases) {
    const std::string error = user_error_of([&] { sampling_of(json); });
    EXPECT_TRUE(contains(error, part)) << error;
    EXPECT_TRUE(contains(error, "generation_config.json")) << error;
  }
}

TEST(FolderSampling, CountsWhereTheUserGivesNone) {
  const TemporaryFolder folder;
  const TemporaryFolder adapter;
  folder.write("generation_config.json", R"({"do_sample": true, "temperature": 0.6, "top_k": 7})");
  const models::ModelSource model{.config = {}, .folder = folder.path()};
  const auto taken = [&](const std::vector<std::string>& words) {
    return with_folder_sampling(golden_recipe("basic", words), model);
  };
  const CapturedStream said(stderr);
  EXPECT_EQ(taken({}).temperature, 0.6);
  EXPECT_EQ(taken({}).top_k, 7);
  EXPECT_TRUE(contains(said.text(), "says: temperature=0.6 top_k=7; any of temperature, top_k, "));
  EXPECT_FALSE(contains(said.text(), "not applied"));
  EXPECT_EQ(taken({"top_p=0.5"}).temperature, 1);
  EXPECT_EQ(taken({"frequency_penalty=0.5"}).top_k, 0);
  // An adapter's folder comes first, where it says anything.
  const std::string with_adapter = "adapter=" + adapter.path().string();
  adapter.write("generation_config.json", R"({"eos_token_id": 3})");
  EXPECT_EQ(taken({with_adapter}).temperature, 0.6);
  adapter.write("generation_config.json", R"({"do_sample": false, "eos_token_id": 3})");
  EXPECT_EQ(taken({with_adapter}).temperature, 0);
}

TEST(FolderSampling, NamesWhatIsNotApplied) {
  const TemporaryFolder folder;
  const models::ModelSource model{.config = {}, .folder = folder.path()};
  const auto said_of = [&](const std::string& json) {
    folder.write("generation_config.json", json);
    const CapturedStream said(stderr);
    with_folder_sampling(golden_recipe("basic"), model);
    return said.text();
  };
  EXPECT_TRUE(contains(said_of(R"({"num_beams": 4, "length_penalty": 2.0, "typical_p": 0.9,
                                   "suppress_tokens": [3, 5], "min_length": 0})"),
                       "not applied: num_beams=4, length_penalty=2.0, suppress_tokens=[3,5]\n"));
  EXPECT_TRUE(contains(said_of(R"({"do_sample": true, "typical_p": 0.9, "length_penalty": 2})"),
                       "not applied: typical_p=0.9\n"));
  EXPECT_EQ(said_of(R"({"num_beams": 1, "length_penalty": 2.0, "no_repeat_ngram_size": 0,
                        "encoder_repetition_penalty": 1.0, "suppress_tokens": null})"),
            "");
}

}  // namespace
}  // namespace snug::testing
