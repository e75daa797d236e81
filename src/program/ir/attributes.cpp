#include "program/ir/attributes.h"

#include <string_view>

#include "base/error.h"
#include "program/kinds/all_kinds.h"
#include "program/kinds/dispatch.h"

namespace snug::program {

bool Attributes::equals(const Attributes& other) const {
  if (kind_ != other.kind_) return false;
  if (kind_ == kNoKind) return true;
  return dispatch<bool>(
      *this, [&]<typename Struct>(const Struct& values) { return values == other.get<Struct>(); });
}

void Attributes::fail_kind(Kind asked) const {
  const std::string_view own = kind_ == kNoKind ? "no kind" : name_of(kind_);
  SNUG_CHECK(false, "attributes of {} were asked for those of {}", own, name_of(asked));
}

Attributes default_attributes(Kind kind) {
  switch (kind) {
#define SNUG_KIND(Struct, name) \
  case Kind::name:              \
    return Struct{};
    SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
  }
  return {};
}

}  // namespace snug::program
