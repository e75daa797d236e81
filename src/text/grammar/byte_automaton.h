// Reads bytes by a grammar. A state is all that may still follow: places, each with the frame of
// rules that it returns to. States are made when they are first needed, kept by number, and found
// again, so that a byte costs a look into a table. Callers of one rule at one byte share a frame,
// by which states stay small however ambiguous the grammar is. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/grammar/byte_grammar.h"

namespace snug::text {

class ByteAutomaton {
 public:
  using State = int32_t;
  static constexpr State kDead = -1;  // nothing that the grammar allows begins like this

  explicit ByteAutomaton(ByteGrammar grammar);

  State start() const { return start_; }
  // The state after one byte more.
  State next(State state, uint8_t byte);
  // Whether the text may end here.
  bool may_end(State state) const;
  // Whether anything may follow.
  bool may_go_on(State state) const;

  // How much memory states take; clear() forgets all of them but the start, so that no state from
  // before means anything.
  size_t bytes() const { return bytes_; }
  void clear();

 private:
  // A place, and the frame to return to at the end of its rule. Frame 0 is that of the root.
  struct Item {
    PlaceId place = 0;
    int32_t frame = 0;
    auto operator<=>(const Item&) const = default;
  };
  using Items = std::vector<Item>;
  struct ItemsHash {
    size_t operator()(const Items& items) const;
  };
  using Numbers = std::unordered_map<Items, int32_t, ItemsHash>;
  static constexpr State kUnknown = -2;

  void class_bytes();
  State after(State state, uint8_t byte);
  void close(Items reached);
  void go_through(Items& open);
  State number_of_state();
  int32_t number_of_frame(Items& returns);

  ByteGrammar grammar_;
  // Bytes that no place tells apart are one class.
  std::array<uint8_t, 256> class_of_{};
  size_t classes_ = 0;

  State start_ = 0;
  std::vector<const Items*> states_;  // the keys of state_numbers_
  std::vector<State> table_;          // (states, classes)
  Numbers state_numbers_;
  std::vector<const Items*> frames_;  // of what each returns to; the keys of frame_numbers_
  Numbers frame_numbers_;
  size_t bytes_ = 0;

  // What is made while one state is found.
  Items found_;
  std::unordered_set<uint64_t> known_;
  std::map<std::pair<int32_t, RuleId>, Items> calls_;  // by rank and rule
};

}  // namespace snug::text
