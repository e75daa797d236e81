// What a run evaluated on comes again after it, without what it trained on.
#include "train/evaluation_documents.h"

#include <gtest/gtest.h>

#include "../cli/tiny_model.h"
#include "backends/backend.h"
#include "formats/recipe/recipe.h"
#include "train/data.h"

namespace snug::train {
namespace {

class EvaluationDocuments : public ::testing::Test {
 protected:
  EvaluationDocuments() {
    cli::write_tiny_shape(folder_, "shape");
    std::string records;
    for (int i = 0; i < 40; ++i)
      records += "{\"question\": \"Say " + std::to_string(i) + ".\", \"answer\": \"a" +
                 std::to_string(i) + "\"}\n";
    folder_.write("data.jsonl", records);
    folder_.write("other.jsonl", "{\"question\": \"And b?\", \"answer\": \"b\"}\n");
    folder_.write("more.jsonl", "{\"question\": \"And c?\", \"answer\": \"cc\"}\n");
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  formats::Recipe recipe(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"model=" + path("shape"),
                                   "fields={prompt: question, completion: answer}"};
    words.insert(words.end(), more.begin(), more.end());
    formats::Recipe recipe = formats::load_recipe("", words);
    if (recipe.data.empty()) recipe.data = {{.path = path("data.jsonl")}};
    return recipe;
  }
  static RunData of_run(const formats::Recipe& recipe) {
    const auto backend = backends::open_backend("cpu", {.threads = 1});
    return load_data(recipe, models::find_model(recipe.model), *backend);
  }
  static text::Dataset after(const formats::Recipe& recipe) {
    return evaluation_documents(recipe, models::find_model(recipe.model));
  }

  testing::TemporaryFolder folder_;
};

TEST_F(EvaluationDocuments, AreTheRecordsThatWereHeldOut) {
  for (const char* size : {"val_set_size=0.2", "val_set_size=5"}) {
    const formats::Recipe held_out = recipe({size, "seed=7", "max_length=64"});
    const RunData run = of_run(held_out);
    ASSERT_EQ(run.evaluation.size(), 1U);
    const text::Dataset found = after(held_out);
    EXPECT_GT(found.documents.size(), 0);
    EXPECT_EQ(found.documents.fingerprint(),
              run.evaluation.front().source->dataset.documents.fingerprint());
  }
}

TEST_F(EvaluationDocuments, AreThoseOfAllSets) {
  formats::Recipe sets = recipe({"val_set_size=0.5", "max_length=64"});
  sets.eval_data = {{.path = path("other.jsonl"), .name = "one"},
                    {.path = path("more.jsonl"), .name = "two"}};
  EXPECT_EQ(after(sets).documents.size(), 2);
}

TEST_F(EvaluationDocuments, AreNotCutWhereTheLengthIsOpen) {
  folder_.write("long.jsonl",
                "{\"question\": \"" + std::string(200, 'q') + "\", \"answer\": \"b\"}\n");
  const text::Dataset found = after(recipe({"eval_data=" + path("long.jsonl"), "max_length=auto"}));
  ASSERT_EQ(found.documents.size(), 1);
  EXPECT_GT(found.documents.length(0), 200);
}

// Nothing of what trains is read, which may be gone by then.
TEST_F(EvaluationDocuments, NeedNoTrainingData) {
  const formats::Recipe alone =
      recipe({"data=" + path("gone.jsonl"), "eval_data=" + path("other.jsonl"), "max_length=64"});
  EXPECT_EQ(after(alone).documents.size(), 1);
}

}  // namespace
}  // namespace snug::train
