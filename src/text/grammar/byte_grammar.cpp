#include "text/grammar/byte_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <unordered_set>
#include <utility>

namespace snug::text {
namespace {

using PlaceKind = GrammarPlace::Kind;

// The places that `place` leads to without reading a byte, `place` too.
std::vector<PlaceId> before_a_byte(const ByteGrammar& grammar, PlaceId place) {
  std::vector<PlaceId> found;
  std::vector<PlaceId> open{place};
  std::unordered_set<PlaceId> known;
  while (!open.empty()) {
    const PlaceId at = open.back();
    open.pop_back();
    if (!known.insert(at).second) continue;
    found.push_back(at);
    const GrammarPlace& here = grammar.places[static_cast<size_t>(at)];
    if (here.kind != PlaceKind::fork) continue;
    open.push_back(here.first);
    open.push_back(here.second);
  }
  return found;
}

// Places are found to lead to an end until none is found any more; the others become dead. Places
// are built from the end, so that few rounds are needed. Throws where no text is left.
void drop_dead_ends(ByteGrammar& grammar) {
  std::vector<bool> lives(grammar.places.size());
  const auto lives_at = [&](PlaceId place) { return bool{lives[static_cast<size_t>(place)]}; };
  const auto leads_on = [&](const GrammarPlace& place) {
    switch (place.kind) {
      case PlaceKind::bytes:
        return std::ranges::any_of(edges_of(grammar, place), lives_at, &ByteEdge::to);
      case PlaceKind::fork:
        return lives_at(place.first) || lives_at(place.second);
      case PlaceKind::call:
        return lives_at(grammar.rules[static_cast<size_t>(place.first)].start) &&
               lives_at(place.second);
      case PlaceKind::end:
        return true;
      case PlaceKind::dead:
        break;
    }
    return false;
  };
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (size_t i = 0; i < lives.size(); ++i) {
      if (lives[i] || !leads_on(grammar.places[i])) continue;
      lives[i] = is_changed = true;
    }
  }
  for (size_t i = 0; i < lives.size(); ++i)
    if (!lives[i]) grammar.places[i] = {};
  if (!lives_at(grammar.rules[static_cast<size_t>(grammar.root)].start))
    throw std::invalid_argument("no text fits it");
}

// UTF-8 as an automaton: the characters of one length, six bits by six bits.
class Utf8Automaton {
 public:
  Utf8Automaton(GrammarBuilder& builder, PlaceId end) : builder_(builder), full_{end} {}

  // The edges of the first byte of a character of `size` bytes.
  void add_edges(const std::vector<CodePointRange>& ranges, int size,
                 std::vector<ByteEdge>& edges) {
    constexpr std::array<uint8_t, 5> kLead = {0, 0x00, 0xC0, 0xE0, 0xF0};
    add_level(ranges, 6 * (size - 1), kLead[static_cast<size_t>(size)], edges);
  }

 private:
  // `shift`: the bits of the bytes after this one.
  void add_level(const std::vector<CodePointRange>& ranges, int shift, uint8_t base,
                 std::vector<ByteEdge>& edges) {
    const char32_t low = (char32_t{1} << shift) - 1;
    std::map<char32_t, std::vector<CodePointRange>> parts;  // by the value of this byte
    for (const auto& [first, last] : ranges) {
      // Whole blocks in the middle become one edge; the first and the last may be parts.
      const char32_t begin = first >> shift;
      const char32_t end = last >> shift;
      for (const char32_t block : {begin, end}) {
        const auto from = std::max<char32_t>(first, block << shift);
        const auto to = std::min<char32_t>(last, block << shift | low);
        parts[block].push_back({from & low, to & low});
        if (begin == end) break;
      }
      for (char32_t block = begin + 1; block < end; ++block) parts[block] = {{0, low}};
    }
    for (const auto& [block, part] : parts) {
      const auto byte = static_cast<uint8_t>(base + block);
      const PlaceId to = place_of(part, shift, low);
      if (!edges.empty() && edges.back().to == to && edges.back().last + 1 == byte)
        edges.back().last = byte;
      else
        edges.push_back({byte, byte, to});
    }
  }

  PlaceId place_of(const std::vector<CodePointRange>& part, int shift, char32_t low) {
    if (part.front() == CodePointRange{0, low}) return full(shift / 6);
    std::vector<ByteEdge> edges;
    add_level(part, shift - 6, 0x80, edges);
    return builder_.bytes(edges);
  }

  // So many bytes more, whatever they are.
  PlaceId full(int bytes) {
    while (std::ssize(full_) <= bytes)
      full_.push_back(builder_.bytes({{0x80, 0xBF, full_.back()}}));
    return full_[static_cast<size_t>(bytes)];
  }

  GrammarBuilder& builder_;
  std::vector<PlaceId> full_;
};

// Those of the ranges that lie in [first, last].
std::vector<CodePointRange> within(const std::vector<CodePointRange>& ranges, char32_t first,
                                   char32_t last) {
  std::vector<CodePointRange> found;
  for (const CodePointRange& range : ranges)
    if (range.first <= last && range.last >= first)
      found.push_back({std::max(range.first, first), std::min(range.last, last)});
  return found;
}

std::vector<ByteEdge> utf8_edges(GrammarBuilder& builder, const std::vector<CodePointRange>& ranges,
                                 PlaceId next) {
  constexpr std::array<char32_t, 5> kEnds = {0, 0x80, 0x800, 0x10000, 0x110000};
  Utf8Automaton automaton(builder, next);
  std::vector<ByteEdge> edges;
  for (int size = 1; size <= 4; ++size) {
    const auto at = static_cast<size_t>(size);
    const std::vector<CodePointRange> part = within(ranges, kEnds[at - 1], kEnds[at] - 1);
    if (!part.empty()) automaton.add_edges(part, size, edges);
  }
  return edges;
}

}  // namespace

std::span<const ByteEdge> edges_of(const ByteGrammar& grammar, const GrammarPlace& place) {
  return std::span(grammar.edges)
      .subspan(static_cast<size_t>(place.first), static_cast<size_t>(place.second));
}

ByteGrammar with_bytes(ByteGrammar grammar, const std::function<bool(uint8_t)>& is_kept) {
  std::vector<ByteEdge> kept;
  for (GrammarPlace& place : grammar.places) {
    if (place.kind != PlaceKind::bytes) continue;
    const size_t first = kept.size();
    for (const ByteEdge& edge : edges_of(grammar, place)) {
      bool goes_on = false;
      for (int value = edge.first; value <= edge.last; ++value) {
        const auto byte = static_cast<uint8_t>(value);
        const bool was_kept = std::exchange(goes_on, is_kept(byte));
        if (goes_on && !was_kept) kept.push_back({byte, byte, edge.to});
        if (goes_on) kept.back().last = byte;
      }
    }
    place.first = static_cast<int32_t>(first);
    place.second = static_cast<int32_t>(kept.size() - first);
  }
  grammar.edges = std::move(kept);
  drop_dead_ends(grammar);
  return grammar;
}

PlaceId GrammarBuilder::add(GrammarPlace place) {
  if (grammar_.places.empty()) grammar_.places.push_back({.kind = PlaceKind::end});
  if (grammar_.places.size() >= kMaxPlaces) refuse_size();
  grammar_.places.push_back(place);
  return static_cast<PlaceId>(grammar_.places.size() - 1);
}

void GrammarBuilder::refuse_size() {
  throw GrammarTooLarge(fmt::format("becomes an automaton of more than {} places", kMaxPlaces));
}

void GrammarBuilder::count_work() {
  if (++work_ > 8 * kMaxPlaces) refuse_size();
}

PlaceId GrammarBuilder::end() {
  if (grammar_.places.empty()) grammar_.places.push_back({.kind = PlaceKind::end});
  return 0;
}

PlaceId GrammarBuilder::dead() { return add({}); }

PlaceId GrammarBuilder::bytes(const std::vector<ByteEdge>& edges) {
  const auto first = static_cast<int32_t>(grammar_.edges.size());
  grammar_.edges.insert(grammar_.edges.end(), edges.begin(), edges.end());
  return add(
      {.kind = PlaceKind::bytes, .first = first, .second = static_cast<int32_t>(edges.size())});
}

PlaceId GrammarBuilder::text(std::string_view bytes, PlaceId next) {
  for (size_t i = bytes.size(); i > 0; --i) next = byte(bytes[i - 1], next);
  return next;
}

PlaceId GrammarBuilder::byte(char value, PlaceId next) {
  const auto of = static_cast<uint8_t>(value);
  return bytes({{of, of, next}});
}

PlaceId GrammarBuilder::fork(PlaceId one, PlaceId other) {
  return add({.kind = PlaceKind::fork, .first = one, .second = other});
}

PlaceId GrammarBuilder::call(RuleId rule, PlaceId next) {
  return add({.kind = PlaceKind::call, .first = rule, .second = next});
}

PlaceId GrammarBuilder::open() { return add({}); }

void GrammarBuilder::decide(PlaceId place, PlaceId one, PlaceId other) {
  grammar_.places[static_cast<size_t>(place)] = {
      .kind = PlaceKind::fork, .first = one, .second = other};
}

PlaceId GrammarBuilder::any_bytes(char first, char last, PlaceId next) {
  const PlaceId loop = open();
  const PlaceId more = bytes({{static_cast<uint8_t>(first), static_cast<uint8_t>(last), loop}});
  decide(loop, more, next);
  return loop;
}

PlaceId GrammarBuilder::character(const CodePointSet& set, PlaceId next) {
  if (set.empty()) return dead();
  constexpr char32_t kLastAscii = 0x7F;
  if (set.ranges().back().last <= kLastAscii) return bytes(utf8_edges(*this, set.ranges(), next));
  // The automaton of a set of many characters is one rule, however often it is used.
  auto [at, is_new] = set_rules_.try_emplace(set.ranges(), 0);
  if (is_new) {
    at->second = rule("a set of characters");
    start(at->second, bytes(utf8_edges(*this, set.ranges(), end())));
  }
  return call(at->second, next);
}

RuleId GrammarBuilder::rule(std::string name) {
  grammar_.rules.push_back({.start = -1});
  names_.push_back(std::move(name));
  return static_cast<RuleId>(grammar_.rules.size() - 1);
}

void GrammarBuilder::start(RuleId rule, PlaceId place) {
  grammar_.rules[static_cast<size_t>(rule)].start = place;
}

ByteGrammar GrammarBuilder::finish(RuleId root) {
  grammar_.root = root;
  drop_dead_ends(grammar_);
  rank_rules();
  return std::move(grammar_);
}

// A rule comes after all rules that can call it before they read a byte.
void GrammarBuilder::rank_rules() {
  const size_t count = grammar_.rules.size();
  std::vector<std::vector<RuleId>> called(count);
  std::vector<int32_t> callers(count);
  for (size_t rule = 0; rule < count; ++rule) {
    for (const PlaceId place : before_a_byte(grammar_, grammar_.rules[rule].start)) {
      const GrammarPlace& here = grammar_.places[static_cast<size_t>(place)];
      if (here.kind == PlaceKind::end && static_cast<RuleId>(rule) != grammar_.root)
        throw std::invalid_argument(fmt::format("{} can be empty", names_[rule]));
      if (here.kind == PlaceKind::call) called[rule].push_back(here.first);
    }
    for (const RuleId one : called[rule]) ++callers[static_cast<size_t>(one)];
  }
  std::vector<size_t> ready;
  for (size_t rule = 0; rule < count; ++rule)
    if (callers[rule] == 0) ready.push_back(rule);
  for (size_t i = 0; i < ready.size(); ++i) {
    const int32_t rank = grammar_.rules[ready[i]].rank;
    for (const RuleId rule : called[ready[i]]) {
      const auto at = static_cast<size_t>(rule);
      grammar_.rules[at].rank = std::max(grammar_.rules[at].rank, rank + 1);
      if (--callers[at] == 0) ready.push_back(at);
    }
  }
  for (size_t rule = 0; rule < count; ++rule)
    if (callers[rule] > 0)
      throw std::invalid_argument(fmt::format("{} begins with itself, without end", names_[rule]));
}

}  // namespace snug::text
