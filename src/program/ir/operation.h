// Operations of a program: a kind with its attributes, and the tensors that it reads, writes and
// updates in place.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "program/ir/attributes.h"
#include "program/ir/tensor.h"
#include "program/kinds/operands.h"

namespace snug::program {

// The resource that an operation occupies while it runs. Operations of different channels run
// concurrently unless a dependency orders them; those of one channel run one after the other.
// `storage`: reading and writing files. `host`: the host's CPU, if the device has memory of its
// own.
enum class Channel : uint8_t {
  compute,
  host_to_device,
  device_to_host,
  interconnect,
  storage,
  host,
};

constexpr auto words_of(Channel /*type*/) {
  return base::words<Channel>({{Channel::compute, "compute"},
                               {Channel::host_to_device, "host_to_device"},
                               {Channel::device_to_host, "device_to_host"},
                               {Channel::interconnect, "interconnect"},
                               {Channel::storage, "storage"},
                               {Channel::host, "host"}});
}
constexpr std::string_view name_of(Channel channel) { return base::word_of(channel); }
inline constexpr size_t kChannelCount = base::kWordsOf<Channel>.size();

enum class Phase : uint8_t { forward, recompute, backward, update };

constexpr auto words_of(Phase /*type*/) {
  return base::words<Phase>({{Phase::forward, "forward"},
                             {Phase::recompute, "recompute"},
                             {Phase::backward, "backward"},
                             {Phase::update, "update"}});
}
constexpr std::string_view name_of(Phase phase) { return base::word_of(phase); }

struct Operation {
  Attributes attributes;
  std::vector<TensorId> reads;    // only read
  std::vector<TensorId> writes;   // entirely overwritten, never read
  std::vector<TensorId> updates;  // read and written in place
  TensorId workspace = kNone;     // scratch, undefined before and after
  // Other than `compute` only for operations that begin a copy, read or write files, or run on the
  // host.
  Channel channel = Channel::compute;
  // Runs in the same launch as the operation before it, as the target decided. All tensors of
  // joined operations stay alive throughout all of them, since these run in no particular order.
  bool joined = false;
  // The number of kernels and library calls that the target starts for this operation and those
  // joined to it, as the target decided, except those for chunks. 0: not stated by the target.
  int32_t launches = 0;
  // Runs on the host's CPU, which uses the tensors in host memory.
  bool on_host = false;
  Phase phase = Phase::forward;
  int32_t layer = -1;  // -1: belongs to no layer

  Kind kind() const { return attributes.kind(); }
  bool operator==(const Operation&) const = default;
};

}  // namespace snug::program
