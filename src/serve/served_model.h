// A model that is open for many users: planned, loaded, with its tokenizer, its chat template and
// the adapters that requests choose from by name.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/inference.h"
#include "engine/sampling.h"
#include "formats/recipe/recipe.h"
#include "text/answer/call_format.h"
#include "text/answer/thought_marks.h"
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
  // The names of those that requests choose from now. Any thread.
  std::vector<std::string> adapters() const;
  // The recipe with one more adapter, or with one fewer. Throws ApiError for a name that is taken,
  // or that there is not.
  formats::Recipe with_adapter(const std::string& name, const std::string& folder) const;
  formats::Recipe without_adapter(const std::string& name) const;
  // From now on these are the adapters.
  void set_adapters(const formats::Recipe& recipe);
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  engine::Inference& inference() { return *inference_; }
  int64_t context() const { return context_; }
  // Of a request that says nothing of it.
  const engine::SamplingOptions& sampling() const { return sampling_; }
  std::optional<int64_t> new_tokens() const { return new_tokens_; }

  // Null where there is none, for the reason why_no_chat().
  const text::ChatTemplate* chat() const { return chat_ ? &*chat_ : nullptr; }
  const std::string& why_no_chat() const { return why_no_chat_; }
  // The marks of thoughts in answers of chats; null: there are none.
  const text::ThoughtMarks* thought_marks() const { return thought_marks_; }
  // What the chat template writes of tools, and under which name it looks for them besides `tools`.
  const text::TemplateCalls& calls() const { return calls_; }
  std::string_view other_name_of_tools() const { return other_name_of_tools_; }
  // The ids that end an answer.
  const std::vector<int32_t>& end_ids(bool is_chat) const {
    return is_chat ? chat_ends_ : text_ends_;
  }

  // The pages of keys and values that there are, in all groups of layers.
  int64_t pages() const { return pages_; }

 private:
  void find_marks();

  formats::Recipe recipe_;
  std::string name_;
  mutable std::mutex mutex_;  // of the recipe's adapters
  std::optional<text::Tokenizer> tokenizer_{};
  std::optional<text::ChatTemplate> chat_{};
  std::string why_no_chat_{};
  const text::ThoughtMarks* thought_marks_ = nullptr;
  text::TemplateCalls calls_{};
  std::string_view other_name_of_tools_{};
  std::vector<int32_t> chat_ends_{};
  std::vector<int32_t> text_ends_{};
  engine::SamplingOptions sampling_{};
  std::optional<int64_t> new_tokens_{};
  int64_t context_ = 0;
  int64_t pages_ = 0;
  std::optional<engine::Inference> inference_{};
};

}  // namespace snug::serve
