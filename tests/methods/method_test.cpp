// The table of methods, and what recipes say of each.
#include "methods/method.h"

#include <gtest/gtest.h>

#include "base/words.h"
#include "formats/method_keys.h"

namespace snug::methods {
namespace {

TEST(Methods, EachWordHasARowWhichSaysWhatRecipesSay) {
  for (const auto& word : words_of(MethodKind{})) {
    const Method& method = method_of(word.value);
    EXPECT_EQ(method.kind, word.value);
    EXPECT_EQ(method.trains_weights, formats::method_keys_of(word.value).trains_weights);
    EXPECT_EQ(method.rewrite == nullptr, method.trains_weights);
  }
  EXPECT_EQ(method_of(formats::AdapterConfig(formats::LoraConfig{})).kind, MethodKind::lora);
}

TEST(Methods, AKeyIsIdleWithTheMethodsThatDoNotReadIt) {
  EXPECT_TRUE(formats::is_idle_key(MethodKind::full, "lora_r"));
  EXPECT_FALSE(formats::is_idle_key(MethodKind::qlora, "lora_r"));
  EXPECT_TRUE(formats::is_idle_key(MethodKind::lora, "freeze_modules"));
  EXPECT_FALSE(formats::is_idle_key(MethodKind::full, "learning_rate"));
}

}  // namespace
}  // namespace snug::methods
