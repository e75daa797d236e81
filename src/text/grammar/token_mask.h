// Which tokens may come next in an answer that follows a grammar: those whose bytes, a part of a
// character perhaps, go on as the grammar does. A mask is found by one walk through the vocabulary,
// in which tokens that begin alike are passed over together, and kept for the next answer that
// comes to the same state. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/grammar/byte_automaton.h"
#include "text/grammar/token_trie.h"

namespace snug::text {

// A grammar over the tokens of a vocabulary, with the states and masks that are known. Shared by
// the answers that follow it.
class TokenGrammar {
 public:
  // Where an answer is: what it has so far, and its state while that is known.
  struct Place {
    std::string bytes{};
    ByteAutomaton::State state = 0;
    uint64_t generation = 0;  // 0: the state is not known
  };
  // What states and masks may take; where they take more, all of them are forgotten.
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  // Texts with a byte that is no token by itself are left out, so that some token fits wherever an
  // answer may come to. Throws UserError where no text is left.
  TokenGrammar(ByteGrammar grammar, std::shared_ptr<const TokenTrie> tokens,
               size_t max_bytes = kMaxBytes);

  // A bit for each id, the lowest first; valid until the next call.
  std::span<const uint64_t> allowed(Place& place);
  bool may_end(Place& place);
  bool may_go_on(Place& place);
  // The token must be allowed.
  void accept(Place& place, int32_t id);

  const TokenTrie& tokens() const { return *tokens_; }

 private:
  void find_state(Place& place);
  void make_room();
  void walk(Place& place, std::vector<uint64_t>& mask);
  ByteAutomaton::State next_on_path(Place& place, size_t node);

  ByteAutomaton automaton_;
  std::shared_ptr<const TokenTrie> tokens_;
  size_t max_bytes_;
  uint64_t generation_ = 1;
  std::unordered_map<ByteAutomaton::State, std::vector<uint64_t>> masks_;
  size_t mask_bytes_ = 0;
  // Of the walk: the state and the byte at each depth.
  std::vector<ByteAutomaton::State> path_;
  std::string path_bytes_;
};

// The tokens that one answer may go on with.
class TokenMask {
 public:
  explicit TokenMask(std::shared_ptr<TokenGrammar> grammar) : grammar_(std::move(grammar)) {}

  // A bit for each id of the vocabulary, the lowest first; valid until the grammar's next mask. No
  // token that ends an answer is among them: it may come where may_end() says so.
  std::span<const uint64_t> allowed() { return grammar_->allowed(place_); }
  // Whether the answer is complete as it is.
  bool may_end() { return grammar_->may_end(place_); }
  // Whether any token may follow.
  bool may_go_on() { return grammar_->may_go_on(place_); }
  // Goes on with a token, which must be allowed.
  void accept(int32_t id) { grammar_->accept(place_, id); }
  // The answer so far.
  const std::string& bytes() const { return place_.bytes; }

 private:
  std::shared_ptr<TokenGrammar> grammar_;
  TokenGrammar::Place place_;
};

}  // namespace snug::text
