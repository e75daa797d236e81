// A state is found in three steps: the edges that read the byte, with all ends of rules that they
// reach; then the rules that are called, by rank, so that all callers of a rule are known before it
// is entered; then the number of what was found.
#include "text/grammar/byte_automaton.h"

#include <algorithm>
#include <span>
#include <utility>

namespace snug::text {
namespace {

using Kind = GrammarPlace::Kind;

constexpr size_t kBytesOfNode = 64;  // of a hash table, next to what it holds

}  // namespace

size_t ByteAutomaton::ItemsHash::operator()(const Items& items) const {
  uint64_t hash = items.size();
  for (const Item& item : items) {
    const uint64_t both = static_cast<uint64_t>(static_cast<uint32_t>(item.place)) << 32 |
                          static_cast<uint32_t>(item.frame);
    hash = (hash ^ both) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  }
  return hash;
}

ByteAutomaton::ByteAutomaton(ByteGrammar grammar) : grammar_(std::move(grammar)) {
  class_bytes();
  clear();
}

void ByteAutomaton::class_bytes() {
  std::array<bool, 257> begins{};
  for (const GrammarPlace& place : grammar_.places) {
    if (place.kind != Kind::bytes) continue;
    for (const ByteEdge& edge : edges_of(grammar_, place)) {
      if (grammar_.places[static_cast<size_t>(edge.to)].kind == Kind::dead) continue;
      begins[edge.first] = true;
      begins[edge.last + size_t{1}] = true;
    }
  }
  size_t of = 0;
  for (size_t byte = 0; byte < class_of_.size(); ++byte) {
    if (begins[byte] && byte > 0) ++of;
    class_of_[byte] = static_cast<uint8_t>(of);
  }
  classes_ = of + 1;
}

void ByteAutomaton::clear() {
  states_.clear();
  table_.clear();
  state_numbers_.clear();
  frames_.clear();
  frame_numbers_.clear();
  bytes_ = 0;
  Items root;
  number_of_frame(root);
  calls_.clear();
  found_.clear();
  known_.clear();
  calls_[{0, grammar_.root}] = {};
  close({});
  start_ = number_of_state();
}

ByteAutomaton::State ByteAutomaton::next(State state, uint8_t byte) {
  const size_t at = static_cast<size_t>(state) * classes_ + class_of_[byte];
  if (table_[at] == kUnknown) {
    const State found = after(state, byte);  // which makes the table longer
    table_[at] = found;
  }
  return table_[at];
}

ByteAutomaton::State ByteAutomaton::after(State state, uint8_t byte) {
  Items reached;
  for (const Item& item : *states_[static_cast<size_t>(state)]) {
    const GrammarPlace& place = grammar_.places[static_cast<size_t>(item.place)];
    if (place.kind != Kind::bytes) continue;
    const auto edges = edges_of(grammar_, place);
    const auto edge = std::ranges::lower_bound(edges, byte, {}, &ByteEdge::last);
    if (edge != edges.end() && edge->first <= byte) reached.push_back({edge->to, item.frame});
  }
  if (reached.empty()) return kDead;
  close(std::move(reached));
  return found_.empty() ? kDead : number_of_state();
}

bool ByteAutomaton::may_end(State state) const {
  return states_[static_cast<size_t>(state)]->front() == Item{};
}

bool ByteAutomaton::may_go_on(State state) const {
  return states_[static_cast<size_t>(state)]->back() != Item{};
}

// Makes found_ of what was reached, and of the calls that are known already.
void ByteAutomaton::close(Items reached) {
  found_.clear();
  known_.clear();
  go_through(reached);
  while (!calls_.empty()) {
    auto call = calls_.extract(calls_.begin());
    const GrammarRule& rule = grammar_.rules[static_cast<size_t>(call.key().second)];
    // The root is called by nobody where its frame is 0.
    const int32_t frame = call.mapped().empty() ? 0 : number_of_frame(call.mapped());
    Items begin{{rule.start, frame}};
    go_through(begin);
  }
  std::ranges::sort(found_);
}

// Follows forks and ends, and notes calls.
void ByteAutomaton::go_through(Items& open) {
  while (!open.empty()) {
    const Item item = open.back();
    open.pop_back();
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(item.place)) << 32 |
                         static_cast<uint32_t>(item.frame);
    if (!known_.insert(key).second) continue;
    const GrammarPlace& place = grammar_.places[static_cast<size_t>(item.place)];
    switch (place.kind) {
      case Kind::bytes:
        found_.push_back(item);
        break;
      case Kind::fork:
        open.push_back({place.second, item.frame});
        open.push_back({place.first, item.frame});
        break;
      case Kind::call:
        calls_[{grammar_.rules[static_cast<size_t>(place.first)].rank, place.first}].push_back(
            {place.second, item.frame});
        break;
      case Kind::end:
        if (item.frame == 0) found_.push_back(Item{});
        for (const Item& back : *frames_[static_cast<size_t>(item.frame)]) open.push_back(back);
        break;
      case Kind::dead:
        break;
    }
  }
}

ByteAutomaton::State ByteAutomaton::number_of_state() {
  const auto [at, is_new] =
      state_numbers_.try_emplace(found_, static_cast<int32_t>(states_.size()));
  if (is_new) {
    states_.push_back(&at->first);
    table_.resize(table_.size() + classes_, kUnknown);
    bytes_ += found_.size() * sizeof(Item) + classes_ * sizeof(State) + kBytesOfNode;
  }
  return at->second;
}

int32_t ByteAutomaton::number_of_frame(Items& returns) {
  std::ranges::sort(returns);
  returns.erase(std::unique(returns.begin(), returns.end()), returns.end());
  const size_t size = returns.size();
  const auto [at, is_new] =
      frame_numbers_.try_emplace(std::move(returns), static_cast<int32_t>(frames_.size()));
  if (is_new) {
    frames_.push_back(&at->first);
    bytes_ += size * sizeof(Item) + kBytesOfNode;
  }
  return at->second;
}

}  // namespace snug::text
