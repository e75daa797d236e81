// Operations of a program: a kind with its attributes, and what it reads, writes and updates in
// place.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "base/words.h"
#include "program/kinds.h"
#include "program/tensor.h"

namespace snug::program {

enum class Kind : uint8_t {
#define SNUG_KIND(Struct, name) name,
  SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
};

constexpr auto words_of(Kind /*type*/) {
  return base::words<Kind>({
#define SNUG_KIND(Struct, name) {Kind::name, #name},
      SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
  });
}
constexpr std::string_view name_of(Kind kind) { return base::word_of(kind); }

// Closes the list of alternatives below; never the kind of an operation.
struct EndOfKinds {
  bool operator==(const EndOfKinds&) const = default;
  static constexpr std::tuple<> kFields{};
};
// Attributes of any kind, in the order of the list, so that index() is the Kind.
using Attributes = std::variant<
#define SNUG_KIND(Struct, name) Struct,
    SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
        EndOfKinds>;
inline constexpr int kKindCount = static_cast<int>(std::variant_size_v<Attributes>) - 1;

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

  Kind kind() const { return static_cast<Kind>(attributes.index()); }
  bool operator==(const Operation&) const = default;
};

// Attributes of a kind with default values.
Attributes default_attributes(Kind kind);

}  // namespace snug::program
