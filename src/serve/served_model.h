// A model that is open for many users: planned, loaded, with its tokenizer, its chat template and
// the adapters that requests choose from by name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/inference.h"
#include "engine/sampling.h"
#include "formats/recipe/recipe.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::serve {

// The tokens of a sequence, prompt and answer, where the recipe does not say.
inline constexpr int64_t kServedContext = 4096;
// The answers that are written side by side, where the recipe does not say.
inline constexpr int64_t kServedSequences = 8;

class ServedModel {
 public:
  // `name`: by which clients ask for it. Throws UserError; with exit code 3 where it does not fit
  // the budget.
  ServedModel(const formats::Recipe& recipe, std::string name);
  ~ServedModel();

  const std::string& name() const { return name_; }
  const std::vector<std::string>& adapters() const { return inference_->adapters(); }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  engine::Inference& inference() { return *inference_; }
  int64_t context() const { return context_; }
  // Of a request that says nothing of it.
  const engine::SamplingOptions& sampling() const { return sampling_; }
  std::optional<int64_t> new_tokens() const { return new_tokens_; }

  // Null where there is none, for the reason why_no_chat().
  const text::ChatTemplate* chat() const { return chat_ ? &*chat_ : nullptr; }
  const std::string& why_no_chat() const { return why_no_chat_; }
  // The ids that end an answer.
  const std::vector<int32_t>& end_ids(bool is_chat) const {
    return is_chat ? chat_ends_ : text_ends_;
  }

  // The pages of keys and values that there are, in all groups of layers.
  int64_t pages() const { return pages_; }

 private:
  std::string name_;
  std::optional<text::Tokenizer> tokenizer_{};
  std::optional<text::ChatTemplate> chat_{};
  std::string why_no_chat_{};
  std::vector<int32_t> chat_ends_{};
  std::vector<int32_t> text_ends_{};
  engine::SamplingOptions sampling_{};
  std::optional<int64_t> new_tokens_{};
  int64_t context_ = 0;
  int64_t pages_ = 0;
  std::optional<engine::Inference> inference_{};
};

}  // namespace snug::serve
