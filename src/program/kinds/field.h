// How a kind's attribute struct lists its fields, so that one visitor prints, parses and compares
// all.
#pragma once

#include <string_view>
#include <tuple>

namespace snug::program {

template <typename Struct, typename Value>
struct Field {
  std::string_view name;
  Value Struct::*member;
};

template <typename Struct, typename Value>
Field(std::string_view, Value Struct::*) -> Field<Struct, Value>;

}  // namespace snug::program
