#include "comm/agreement.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace snug::comm {
namespace {

// Names and values in turn as "LENGTH:text", so that they may hold any bytes.
std::string pack(std::span<const NamedValue> values) {
  std::string text;
  for (const NamedValue& value : values)
    for (const std::string& word : {value.name, value.value})
      text += std::to_string(word.size()) + ":" + word;
  return text;
}

std::string next_word(std::string_view& text) {
  size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  SNUG_CHECK(error == std::errc(), "no packed values");
  text.remove_prefix(end - text.data() + 1);
  const std::string word(text.substr(0, length));
  text.remove_prefix(length);
  return word;
}

std::vector<NamedValue> unpack(std::string_view text) {
  std::vector<NamedValue> values;
  while (!text.empty()) {
    std::string name = next_word(text);
    values.push_back({std::move(name), next_word(text)});
  }
  return values;
}

// How an error shows a value; a value that only the other rank has is said to be missing.
std::string shown(const std::vector<NamedValue>& values, const std::string& name) {
  for (const NamedValue& value : values)
    if (value.name == name) return "'" + value.value + "'";
  return "missing";
}

// A description of the first difference, if there is one.
std::optional<std::string> difference(const std::vector<NamedValue>& first,
                                      const std::vector<NamedValue>& other, size_t rank) {
  for (const auto* side : {&first, &other})
    for (const NamedValue& value : *side)
      if (shown(first, value.name) != shown(other, value.name))
        return fmt::format(
            "The ranks do not agree on {}: it is {} on rank 0 and {} on rank {}. All ranks of a "
            "job "
            "need the same.",
            value.name, shown(first, value.name), shown(other, value.name), rank);
  return std::nullopt;
}

// A rank that throws stops the others, so each first waits until all have received what they
// compare. After that another rank may already stop this one in the barrier; the disagreement is
// the better error.
[[noreturn]] void throw_together(Communicator& communicator, const std::string& error) {
  try {
    communicator.barrier();
  } catch (const base::UserError&) {
    throw base::UserError(error);
  }
  throw base::UserError(error);
}

}  // namespace

void require_agreement(Communicator& communicator, std::span<const NamedValue> values) {
  const auto texts = communicator.all_gather_text(pack(values));
  for (size_t rank = 1; rank < texts.size(); ++rank)
    if (const auto found = difference(unpack(texts[0]), unpack(texts[rank]), rank))
      throw_together(communicator, *found);
}

}  // namespace snug::comm
