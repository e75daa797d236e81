#include "program/tensor.h"

#include <fmt/format.h>

#include "base/error.h"

namespace snug::program {
namespace {

constexpr std::array<std::string_view, kRoleCount> kRoles{
    "weight",    "quant_state", "adapter",    "master", "gradient",
    "moment",    "activation",  "checkpoint", "logits", "kv_cache",
    "workspace", "staging",     "batch",      "scalar", "comm_buffer"};
constexpr std::array<std::string_view, kSpaceCount> kSpaces{"device", "pinned_host", "host"};
constexpr std::array<std::string_view, 3> kLifetimes{"run", "step", "program"};

template <typename Enum, size_t N>
std::optional<Enum> find(const std::array<std::string_view, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> dims) {
  for (const int64_t dim : dims) append(dim);
}

void Shape::append(int64_t dim) {
  SNUG_CHECK(rank_ < kMaxRank, "a tensor has at most {} dimensions", kMaxRank);
  SNUG_CHECK(dim >= 0, "a dimension of {}", dim);
  dims_[static_cast<size_t>(rank_++)] = dim;
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

int64_t Shape::rows() const {
  int64_t product = 1;
  for (int axis = 0; axis + 1 < rank_; ++axis) product *= (*this)[axis];
  return product;
}

std::array<int64_t, Shape::kMaxRank> dense_strides(const Shape& shape) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

std::string_view name_of(Role role) { return kRoles[static_cast<size_t>(role)]; }
std::string_view name_of(Space space) { return kSpaces[static_cast<size_t>(space)]; }
std::string_view name_of(Lifetime lifetime) { return kLifetimes[static_cast<size_t>(lifetime)]; }
std::optional<Role> role_from_name(std::string_view name) { return find<Role>(kRoles, name); }
std::optional<Space> space_from_name(std::string_view name) { return find<Space>(kSpaces, name); }
std::optional<Lifetime> lifetime_from_name(std::string_view name) {
  return find<Lifetime>(kLifetimes, name);
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int axis = 0; axis < shape.rank(); ++axis)
    text += fmt::format("{}{}", axis == 0 ? "" : ", ", shape[axis]);
  return text + ")";
}

}  // namespace snug::program
