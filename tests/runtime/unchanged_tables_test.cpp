// Tables that PEFT saved next to an adapter that training goes on with.
#include "runtime/saving/unchanged_tables.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using testing::contains;
using testing::golden;
using testing::user_error_of;

std::vector<std::string> tables_of(const std::string& adapter, const std::string& model) {
  return unchanged_tables(golden(adapter), models::find_model((golden(model) / "model").string()));
}

TEST(UnchangedTables, AreTheModelsOwn) {
  const std::vector<std::string> embedding{"model.embed_tokens.weight"};
  EXPECT_EQ(tables_of("lora_embedding/adapter", "stablelm"), embedding);
  EXPECT_EQ(tables_of("adapter_forms/head", "mistral"), std::vector<std::string>{"lm_head.weight"});
  // Of a head that is the embedding, too.
  EXPECT_EQ(tables_of("adapter_forms/head_and_embedding_tied", "qwen2").size(), 2U);
  // What modules_to_save names is trained.
  EXPECT_EQ(tables_of("adapter_forms/saved", "mistral"), std::vector<std::string>{});
  EXPECT_EQ(tables_of("prompt_layer/adapter", "grouped_tied"), std::vector<std::string>{});
}

TEST(UnchangedTables, OthersAreRefused) {
  for (const auto& [adapter, model] : {std::pair{"adapter_forms/tables", "mistral"},
                                       {"adapter_forms/tables_tied", "qwen2"},
                                       {"adapter_forms/resized", "mistral"}}) {
    const std::string error = user_error_of([&] { tables_of(adapter, model); });
    EXPECT_TRUE(contains(error, "which is another than the model's: PEFT saved it")) << adapter;
  }
}

}  // namespace
}  // namespace snug::runtime
