#include "engine/answer_mask.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace snug::engine {

AnswerMask::AnswerMask(std::shared_ptr<text::TokenGrammar> grammar,
                       std::span<const int32_t> end_ids)
    : mask_(std::move(grammar)), end_ids_(end_ids.begin(), end_ids.end()) {}

std::span<const float> AnswerMask::applied(std::span<const float> logits) {
  constexpr size_t kBits = 64;
  result_.assign(logits.size(), -std::numeric_limits<float>::infinity());
  const std::span<const uint64_t> allowed = mask_.allowed();
  for (size_t word = 0; word < allowed.size(); ++word) {
    for (uint64_t bits = allowed[word]; bits != 0; bits &= bits - 1) {
      const size_t id = word * kBits + static_cast<size_t>(std::countr_zero(bits));
      if (id < logits.size()) result_[id] = logits[id];
    }
  }
  const bool may_end = mask_.may_end();
  for (const int32_t id : end_ids_) {
    const auto at = static_cast<size_t>(id);
    if (at >= logits.size()) continue;
    result_[at] = may_end ? logits[at] : -std::numeric_limits<float>::infinity();
  }
  return result_;
}

bool AnswerMask::accept(int32_t id) {
  if (is_end(id)) return false;
  mask_.accept(id);
  return mask_.may_go_on();
}

bool AnswerMask::is_end(int32_t id) const {
  return std::ranges::find(end_ids_, id) != end_ids_.end();
}

}  // namespace snug::engine
