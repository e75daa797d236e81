#include "methods/method.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/words.h"

namespace snug::methods {
namespace {

const auto& table() {
  static const std::array<const Method*, 5> rows{&kFull, &kLora, &kQlora, &kAdapter, &kAdapterV2};
  return rows;
}

// Where full training does not fit, an adapter may.
constexpr std::array kLeanerThanFull{MethodKind::lora, MethodKind::qlora};

}  // namespace

const Method kFull{.kind = MethodKind::full, .trains_weights = true, .leaner = kLeanerThanFull};

const Method& method_of(MethodKind kind) {
  const auto found = std::ranges::find(table(), kind, &Method::kind);
  SNUG_CHECK(found != table().end(), "no method {}", base::word_of(kind));
  return **found;
}

const Method& method_of(const formats::AdapterConfig& config) {
  const auto found = std::ranges::find_if(
      table(), [&](const Method* row) { return row->reads != nullptr && row->reads(config); });
  SNUG_CHECK(found != table().end(), "no method reads an adapter of form {}", config.index());
  return **found;
}

}  // namespace snug::methods
