#include "text/chat/jinja/values/part_search.h"

#include <cstring>

#include "text/chat/jinja/meter.h"
#include "text/chat/jinja/values/text_builder.h"

namespace snug::text::jinja {
namespace {

std::string reversed_bytes(std::string_view text) {
  charge_bytes(static_cast<int64_t>(text.size()));
  return {text.rbegin(), text.rend()};
}

}  // namespace

PartSearch::PartSearch(std::string_view text, std::string_view part, bool from_right)
    : text_(text), part_(part), from_right_(from_right) {
  if (!from_right_ || part_.size() > text_.size()) return;
  reversed_text_ = reversed_bytes(text);
  reversed_part_ = reversed_bytes(part);
}

size_t PartSearch::next() {
  const std::string_view text = from_right_ ? reversed_text_ : text_;
  const std::string_view part = from_right_ ? reversed_part_ : part_;
  if (part_.size() > text_.size() - at_) return std::string_view::npos;
  // glibc's memmem takes linear time, while std::string_view::find may take quadratic time.
  const char* const begin = text.data() + at_;
  const auto* const found =
      static_cast<const char*>(::memmem(begin, text.size() - at_, part.data(), part.size()));
  const size_t searched =
      found == nullptr ? text.size() - at_ : static_cast<size_t>(found - begin) + part.size();
  charge_steps(searched, kSearchedPerStep);
  if (found == nullptr) {
    at_ = text.size();
    return std::string_view::npos;
  }
  at_ += searched;
  return from_right_ ? text.size() - at_ : at_ - part.size();
}

}  // namespace snug::text::jinja
