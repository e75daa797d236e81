#include "text/grammar/token_mask.h"

#include <stdexcept>
#include <utility>

#include "base/error.h"

namespace snug::text {
namespace {

constexpr size_t kBitsOfWord = 64;

void allow_token(std::vector<uint64_t>& mask, int32_t id) {
  const auto at = static_cast<size_t>(id);
  mask[at / kBitsOfWord] |= uint64_t{1} << at % kBitsOfWord;
}

// An answer so never comes to where no token fits.
ByteGrammar of_tokens(ByteGrammar grammar, const TokenTrie& tokens) {
  try {
    return with_bytes(std::move(grammar), [&](uint8_t byte) { return tokens.has_byte(byte); });
  } catch (const std::invalid_argument&) {
    base::throw_user_error(
        "the tokenizer has no tokens for single characters or bytes of which an answer of this "
        "form could be made; use a model whose tokenizer is byte-level or has byte fallback");
  }
}

}  // namespace

TokenGrammar::TokenGrammar(ByteGrammar grammar, std::shared_ptr<const TokenTrie> tokens,
                           size_t max_bytes)
    : automaton_(of_tokens(std::move(grammar), *tokens)),
      tokens_(std::move(tokens)),
      max_bytes_(max_bytes) {
  path_.resize(tokens_->depth() + 1);
  path_bytes_.resize(tokens_->depth() + 1);
}

std::span<const uint64_t> TokenGrammar::allowed(Place& place) {
  make_room();
  find_state(place);
  if (const auto known = masks_.find(place.state); known != masks_.end()) return known->second;
  const size_t words = (static_cast<size_t>(tokens_->id_end()) + kBitsOfWord - 1) / kBitsOfWord;
  std::vector<uint64_t> mask(words);
  walk(place, mask);
  mask_bytes_ += words * sizeof(uint64_t);
  return masks_[place.state] = std::move(mask);
}

bool TokenGrammar::may_end(Place& place) {
  find_state(place);
  return automaton_.may_end(place.state);
}

bool TokenGrammar::may_go_on(Place& place) {
  find_state(place);
  return automaton_.may_go_on(place.state);
}

void TokenGrammar::accept(Place& place, int32_t id) {
  make_room();
  find_state(place);
  const std::string& bytes = tokens_->bytes_of(id);
  SNUG_CHECK(!bytes.empty(), "token {} is accepted, which has no text", id);
  for (const char byte : bytes) {
    place.state = automaton_.next(place.state, static_cast<uint8_t>(byte));
    SNUG_CHECK(place.state != ByteAutomaton::kDead, "token {} is accepted, which does not fit", id);
  }
  place.bytes += bytes;
}

// The state of an answer, found again from its bytes where states were forgotten.
void TokenGrammar::find_state(Place& place) {
  if (place.generation == generation_) return;
  place.state = automaton_.start();
  for (const char byte : place.bytes)
    place.state = automaton_.next(place.state, static_cast<uint8_t>(byte));
  place.generation = generation_;
}

void TokenGrammar::make_room() {
  if (automaton_.bytes() + mask_bytes_ <= max_bytes_) return;
  automaton_.clear();
  masks_.clear();
  mask_bytes_ = 0;
  ++generation_;
}

void TokenGrammar::walk(Place& place, std::vector<uint64_t>& mask) {
  const std::vector<TokenTrie::Node>& nodes = tokens_->nodes();
  const std::vector<int32_t>& tokens = tokens_->tokens();
  path_[0] = place.state;
  for (size_t i = 0; i < nodes.size();) {
    const ByteAutomaton::State state = next_on_path(place, i);
    if (state == ByteAutomaton::kDead) {
      i = static_cast<size_t>(nodes[i].end);
      continue;
    }
    path_[nodes[i].depth] = state;
    for (int32_t at = nodes[i].first_token; at < tokens_->tokens_end(i); ++at)
      allow_token(mask, tokens[static_cast<size_t>(at)]);
    ++i;
  }
}

// The state after a node's byte. Where the states of the walk have become too many, they are
// forgotten, and those of the way to here are found again.
ByteAutomaton::State TokenGrammar::next_on_path(Place& place, size_t node) {
  const TokenTrie::Node& at = tokens_->nodes()[node];
  if (automaton_.bytes() > max_bytes_) {
    make_room();
    find_state(place);
    path_[0] = place.state;
    for (size_t depth = 1; depth < at.depth; ++depth)
      path_[depth] = automaton_.next(path_[depth - 1], static_cast<uint8_t>(path_bytes_[depth]));
  }
  path_bytes_[at.depth] = static_cast<char>(at.byte);
  return automaton_.next(path_[at.depth - size_t{1}], at.byte);
}

}  // namespace snug::text
