// Checks how a program says where an operation runs: its channel, whether it is on the host, and
// its number of launches. Each backend accepts exactly one such placement, and prepare() refuses
// any other.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "base/error.h"
#include "program/ir/operands.h"
#include "program/ir/program.h"
#include "program/kinds/kind.h"
#include "program/work/target.h"

namespace snug::backends {

// Whether an operand, except the workspace, is in host memory.
inline bool touches_host_memory(const program::OperationView& view) {
  bool found = false;
  program::for_each_tensor(view.operation, [&](program::TensorId id) {
    found = found || (id != view.operation.workspace &&
                      view.program.tensor(id).space != program::Space::device);
  });
  return found;
}

// Host memory is only for copies and for operations that are placed on the host; on a device with
// memory of its own also for operations that read it once over the link.
inline bool has_right_place(const program::OperationView& view, const program::Target& target) {
  const program::Traits& traits = program::traits_of(view.operation);
  const bool on_host = view.operation.on_host;
  if (traits.copying != program::Copying::none) return !on_host;
  const bool touches_host = touches_host_memory(view);
  if (target.host_reaches_device()) return on_host == touches_host;
  if (on_host) return touches_host && traits.is_of_optimizer();
  return traits.reads_in_place || !touches_host;
}

// Where the host can access the device's memory, copies do not run in parallel with other work.
inline bool has_right_channel(const program::OperationView& view, const program::Target& target) {
  using program::Channel;
  const program::Traits& traits = program::traits_of(view.operation);
  const Channel channel = view.operation.channel;
  if (traits.category == program::Category::collective) return channel == Channel::interconnect;
  if (target.host_reaches_device()) return channel == Channel::compute;
  if (view.operation.on_host) return channel == Channel::host;
  if (traits.copying == program::Copying::none || traits.copying == program::Copying::with_host)
    return channel == Channel::compute;
  const program::TensorId to = program::copies_of(view.operation).front().second;
  const bool is_to_device = view.program.tensor(to).space == program::Space::device;
  if (traits.copying == program::Copying::begins)
    return channel == (is_to_device ? Channel::host_to_device : Channel::device_to_host);
  return channel == Channel::compute || (channel == Channel::host && !is_to_device);
}

// Fails a CHECK where the placement of the operation is not the one for this target, or where it
// states another number of launches than the target uses for it.
inline void check_placement(const program::OperationView& view, const program::Target& target) {
  const program::Operation& operation = view.operation;
  const std::string_view kind = program::name_of(operation.kind());
  SNUG_CHECK(has_right_place(view, target),
             "{} is {} the host, which does not fit where its operands lie", kind,
             operation.on_host ? "placed on" : "not placed on");
  SNUG_CHECK(has_right_channel(view, target), "{} on channel {}, on which {} does not run it", kind,
             program::name_of(operation.channel), target.name());
  const int32_t launches = operation.channel == program::Channel::host ? 0 : target.launches(view);
  SNUG_CHECK(operation.launches == launches, "{} takes {} launches here, planned were {}", kind,
             launches, operation.launches);
}

// The operation's index in its program's list; nothing where it is not in the list.
inline std::optional<size_t> position_of(const program::OperationView& view) {
  const std::vector<program::Operation>& list = view.program.operations;
  const bool is_listed = !list.empty() && std::less_equal<>()(list.data(), &view.operation) &&
                         std::less_equal<>()(&view.operation, &list.back());
  if (!is_listed) return std::nullopt;
  return static_cast<size_t>(&view.operation - list.data());
}

// Fails a CHECK where an await is for a copy or collective that its program has not begun before,
// or that was already awaited on its channel.
inline void check_awaited_once(const program::OperationView& view) {
  const std::optional<size_t> position = position_of(view);
  if (!position || program::traits_of(view.operation).copying != program::Copying::ends) return;
  const program::TensorId to = program::copies_of(view.operation).front().second;
  for (size_t i = *position; i-- > 0;) {
    const program::Operation& before = view.program.operations[i];
    const bool begins = program::traits_of(before).copying == program::Copying::begins;
    const bool ends = program::traits_of(before).copying == program::Copying::ends;
    if (!begins && !ends) continue;
    const auto copies = program::copies_of(before);
    if (std::ranges::none_of(copies, [&](const auto& copy) { return copy.second == to; })) continue;
    SNUG_CHECK(begins || before.channel != view.operation.channel,
               "a copy is awaited twice on channel {}", program::name_of(before.channel));
    if (begins) return;
  }
  SNUG_CHECK(false, "{} is awaited, which nothing before it begins", view.program.tensor(to).name);
}

// Fails a CHECK where the operation is joined to another's launch, for a backend without launches.
inline void check_not_joined(const program::OperationView& view, const program::Target& target) {
  SNUG_CHECK(!view.operation.joined, "{} is joined to another operation, which {} does not do",
             program::name_of(view.operation.kind()), target.name());
}

}  // namespace snug::backends
