// Operations of a program: a kind with its attributes, and what it reads, writes and updates in
// place.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "program/ir/attributes.h"
#include "program/ir/tensor.h"
#include "program/kinds/operands.h"

namespace snug::program {

// What an operation occupies while it runs. Operations of different channels run side by side where
// nothing orders them; those of one channel run one after the other.
// `storage`: files are read or written. `host`: the host's processor, next to a device with memory
// of its own.
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
  std::vector<TensorId> writes;   // wholly overwritten, never read
  std::vector<TensorId> updates;  // read and written in place
  TensorId workspace = kNone;     // scratch, undefined before and after
  // The channel is not `compute` only for what begins a copy, reads or writes files or is placed on
  // the host.
  Channel channel = Channel::compute;
  // Runs in one launch with the operation before it, as the target decided. Every tensor that one
  // of the joined operations touches stays alive throughout all of them, since they run in no
  // particular order.
  bool joined = false;
  // Kernels and library calls that the target starts for it and for what is joined to it, as the
  // target decided, except those of chunks. 0: the target does not say.
  int32_t launches = 0;
  // Placed on the host: its processor works on the tensors where the host's memory holds them.
  bool on_host = false;
  Phase phase = Phase::forward;
  int32_t layer = -1;  // -1: belongs to no layer

  Kind kind() const { return attributes.kind(); }
  bool operator==(const Operation&) const = default;
};

}  // namespace snug::program
