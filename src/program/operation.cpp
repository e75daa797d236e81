#include "program/operation.h"

namespace snug::program {

Attributes default_attributes(Kind kind) {
  switch (kind) {
#define SNUG_KIND(Struct, name) \
  case Kind::name:              \
    return Struct{};
    SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
  }
  return EndOfKinds{};
}

}  // namespace snug::program
