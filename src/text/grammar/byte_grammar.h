// A grammar over bytes: rules that are automata, whose places read a byte, fork, or call another
// rule and go on after it. Regular expressions and JSON schemas become one; recursion is a rule
// that calls itself, never before it has read a byte. A grammar is immutable once it is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/code_point_set.h"

namespace snug::text {

using PlaceId = int32_t;
using RuleId = int32_t;

struct ByteEdge {
  uint8_t first = 0;
  uint8_t last = 0;  // belongs to the range
  PlaceId to = 0;
};

struct GrammarPlace {
  enum class Kind : uint8_t {
    bytes,  // the edges from `first`, `second` of them, in ascending order
    fork,   // goes on at `first` and at `second`
    call,   // reads the rule `first`, then goes on at `second`
    end,    // of the rule
    dead,   // leads nowhere
  };
  Kind kind = Kind::dead;
  int32_t first = 0;
  int32_t second = 0;
};

struct GrammarRule {
  PlaceId start = 0;
  int32_t rank = 0;  // above the ranks of the rules that can call this one before they read a byte
};

struct ByteGrammar {
  std::vector<GrammarPlace> places;
  std::vector<ByteEdge> edges;
  std::vector<GrammarRule> rules;
  RuleId root = 0;
};

std::span<const ByteEdge> edges_of(const ByteGrammar& grammar, const GrammarPlace& place);

// The same grammar without the texts that have a byte for which `is_kept` says no. Throws
// std::invalid_argument where no text is left.
ByteGrammar with_bytes(ByteGrammar grammar, const std::function<bool(uint8_t)>& is_kept);

struct GrammarTooLarge : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// Builds a grammar from its end to its beginning: each function takes the place where reading goes
// on, and returns the place where it begins. Throws GrammarTooLarge for more than kMaxPlaces
// places.
class GrammarBuilder {
 public:
  static constexpr size_t kMaxPlaces = size_t{1} << 17;

  PlaceId end();
  PlaceId dead();
  PlaceId bytes(const std::vector<ByteEdge>& edges);
  PlaceId text(std::string_view bytes, PlaceId next);
  PlaceId byte(char value, PlaceId next);
  PlaceId fork(PlaceId one, PlaceId other);
  PlaceId call(RuleId rule, PlaceId next);
  // One character of the set.
  PlaceId character(const CodePointSet& set, PlaceId next);
  // `bytes` of any number, none too, each a byte of this range.
  PlaceId any_bytes(char first, char last, PlaceId next);

  // A place that is decided later, by decide(); for loops.
  PlaceId open();
  void decide(PlaceId place, PlaceId one, PlaceId other);

  // A rule whose start is given later; `name` is for messages.
  RuleId rule(std::string name);
  void start(RuleId rule, PlaceId place);

  // Counts steps of building that may make no place, against the same limit.
  void count_work();

  // The grammar whose texts are those of `root`. Places that no text leads on from are dropped.
  // Throws std::invalid_argument where there is no text at all, where a rule can be empty, and
  // where it can call itself before it reads a byte.
  ByteGrammar finish(RuleId root);

 private:
  PlaceId add(GrammarPlace place);
  [[noreturn]] static void refuse_size();
  void rank_rules();

  ByteGrammar grammar_;
  std::vector<std::string> names_;
  std::map<std::vector<CodePointRange>, RuleId> set_rules_;
  size_t work_ = 0;
};

}  // namespace snug::text
