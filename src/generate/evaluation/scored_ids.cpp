#include "generate/evaluation/scored_ids.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::generate {
namespace {

using Ids = std::vector<int32_t>;

int32_t prefix_id(const text::Tokenizer& tokenizer) {
  if (const auto bos = tokenizer.bos_id()) return *bos;
  if (const auto eos = tokenizer.eos_id()) return *eos;
  base::throw_user_error(
      "a text is scored from its first token on, after BOS or EOS, and the tokenizer names "
      "neither; "
      "name one in tokenizer_config.json (bos_token)");
}

// Without a context, the id that the continuation begins with may itself be BOS.
ScoredIds without_context(const text::Tokenizer& tokenizer, const std::string& continuation) {
  const int32_t prefix = prefix_id(tokenizer);
  Ids ids = tokenizer.encode(continuation, false);
  if (ids.empty() || ids.front() != prefix) ids.insert(ids.begin(), prefix);
  const int64_t scored = std::ssize(ids) - 1;
  return {.ids = std::move(ids), .scored = scored};
}

}  // namespace

Ids text_ids(const text::Tokenizer& tokenizer, const std::string& text) {
  const std::optional<int32_t> bos = tokenizer.bos_id() ? tokenizer.bos_id() : tokenizer.eos_id();
  const std::string_view begins = bos ? tokenizer.token_of(*bos).value_or("") : "";
  return tokenizer.encode(text, begins.empty() || !text.starts_with(begins));
}

ScoredIds continuation_ids(const text::Tokenizer& tokenizer, std::string context,
                           std::string continuation, int64_t window) {
  const size_t kept = text::jinja::strip(context, text::jinja::Side::right).size();
  if (!context.empty()) continuation.insert(0, context, kept);
  context.resize(kept);
  ScoredIds result;
  if (context.empty()) {
    result = without_context(tokenizer, continuation);
  } else {
    const int64_t before = std::ssize(text_ids(tokenizer, context));
    result.ids = text_ids(tokenizer, context + continuation);
    result.scored = std::ssize(result.ids) - before;
  }
  if (result.scored < 1)
    base::throw_user_error("the continuation '{}' has no token of its own after its context",
                           continuation);
  if (result.scored > window)
    base::throw_user_error(
        "a continuation has {} tokens, and a window {}; score it with output_type: "
        "loglikelihood_rolling, or raise max_length",
        result.scored, window);
  result.is_cut = std::ssize(result.ids) > window + 1;
  if (result.is_cut) result.ids.erase(result.ids.begin(), result.ids.end() - (window + 1));
  return result;
}

std::vector<ScoredIds> rolling_windows(const text::Tokenizer& tokenizer, const std::string& text,
                                       int64_t window) {
  Ids ids = text_ids(tokenizer, text);
  const int64_t tokens = std::ssize(ids);
  ids.insert(ids.begin(), prefix_id(tokenizer));
  std::vector<ScoredIds> windows;
  for (int64_t done = 0; done < tokens;) {
    const int64_t scored = std::min(window, tokens - done);
    done += scored;
    // ids[done] is the last that is scored.
    const int64_t first = std::max<int64_t>(0, done - window);
    windows.push_back({.ids = Ids(ids.begin() + first, ids.begin() + done + 1), .scored = scored});
  }
  return windows;
}

std::vector<ScoredIds> strided_windows(std::span<const int32_t> ids, int64_t window,
                                       int64_t stride) {
  std::vector<ScoredIds> windows;
  const int64_t tokens = std::ssize(ids);
  int64_t scored_to = 1;
  for (int64_t begin = 0; begin < tokens && scored_to < tokens; begin += stride) {
    const int64_t end = std::min(begin + window, tokens);
    const auto part = ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    const int64_t scored = end - std::max(scored_to, begin + 1);
    if (scored > 0) windows.push_back({.ids = Ids(part.begin(), part.end()), .scored = scored});
    scored_to = end;
  }
  return windows;
}

}  // namespace snug::generate
