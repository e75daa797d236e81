// The model's tokenizer, opened when the first file needs it: tokens do not. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::train {

class LazyTokenizer {
 public:
  // Both must outlive the object.
  LazyTokenizer(const formats::Recipe& recipe, const models::ModelSource& model)
      : recipe_(recipe), model_(model) {}

  // Throws UserError where there is none.
  const text::Tokenizer& open();
  // Opens it if there is one.
  void try_open();
  // The tokenizer, where one was opened; none is left here.
  std::optional<text::Tokenizer> take();
  // Fills the tails of rows, which nothing reads.
  int32_t padding_id() const;

 private:
  const formats::Recipe& recipe_;
  const models::ModelSource& model_;
  std::optional<text::Tokenizer> tokenizer_;
};

}  // namespace snug::train
