#include "program/operation.h"

#include <array>

namespace snug::program {
namespace {

constexpr std::array<std::string_view, kKindCount> kKinds{
#define SNUG_KIND(Struct, name) #name,
    SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
};
constexpr std::array<std::string_view, kChannelCount> kChannels{
    "compute", "host_to_device", "device_to_host", "interconnect", "storage", "host"};
constexpr std::array<std::string_view, 4> kPhases{"forward", "recompute", "backward", "update"};

}  // namespace

std::string_view name_of(Kind kind) { return kKinds[static_cast<size_t>(kind)]; }
std::string_view name_of(Channel channel) { return kChannels[static_cast<size_t>(channel)]; }
std::string_view name_of(Phase phase) { return kPhases[static_cast<size_t>(phase)]; }

std::optional<Kind> kind_from_name(std::string_view name) {
  for (size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i] == name) return static_cast<Kind>(i);
  return std::nullopt;
}

std::optional<Channel> channel_from_name(std::string_view name) {
  for (size_t i = 0; i < kChannels.size(); ++i)
    if (kChannels[i] == name) return static_cast<Channel>(i);
  return std::nullopt;
}

std::optional<Phase> phase_from_name(std::string_view name) {
  for (size_t i = 0; i < kPhases.size(); ++i)
    if (kPhases[i] == name) return static_cast<Phase>(i);
  return std::nullopt;
}

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
