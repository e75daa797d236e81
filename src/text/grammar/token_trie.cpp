#include "text/grammar/token_trie.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace snug::text {
namespace {

// Longer tokens, of which a walk would keep too much, are left out.
constexpr size_t kMaxTokenBytes = 4096;

std::vector<std::string> bytes_of_tokens(const Tokenizer& tokenizer) {
  std::vector<std::string> bytes(static_cast<size_t>(tokenizer.vocabulary_size()));
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id)
    if (auto of_token = tokenizer.bytes_of(id))
      bytes[static_cast<size_t>(id)] = std::move(*of_token);
  return bytes;
}

}  // namespace

TokenTrie::TokenTrie(const Tokenizer& tokenizer) : TokenTrie(bytes_of_tokens(tokenizer)) {
  if (tokens_.empty())
    base::throw_user_error(
        "the text of each token of this tokenizer depends on its neighbours, so answers cannot be "
        "held to a form; leave out regex and json_schema");
}

TokenTrie::TokenTrie(std::vector<std::string> bytes_of_ids) : bytes_(std::move(bytes_of_ids)) {
  for (size_t id = 0; id < bytes_.size(); ++id)
    if (!bytes_[id].empty() && bytes_[id].size() <= kMaxTokenBytes)
      tokens_.push_back(static_cast<int32_t>(id));
  std::ranges::sort(tokens_, [&](int32_t a, int32_t b) {
    return std::pair<const std::string&, int32_t>(bytes_of(a), a) <
           std::pair<const std::string&, int32_t>(bytes_of(b), b);
  });
  std::vector<int32_t> path;  // nodes of the token before
  const auto leave = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes_[static_cast<size_t>(path.back())].end = static_cast<int32_t>(nodes_.size());
  };
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& bytes = bytes_of(tokens_[i]);
    size_t shared = 0;
    while (shared < path.size() && shared < bytes.size() &&
           nodes_[static_cast<size_t>(path[shared])].byte == static_cast<uint8_t>(bytes[shared]))
      ++shared;
    leave(shared);
    while (path.size() < bytes.size()) {
      path.push_back(static_cast<int32_t>(nodes_.size()));
      nodes_.push_back({.byte = static_cast<uint8_t>(bytes[path.size() - 1]),
                        .depth = static_cast<uint16_t>(path.size()),
                        .end = 0,
                        .first_token = static_cast<int32_t>(i)});
    }
    depth_ = std::max(depth_, path.size());
  }
  leave(0);
  for (const int32_t id : tokens_)
    if (bytes_of(id).size() == 1) has_byte_[static_cast<uint8_t>(bytes_of(id).front())] = true;
}

int32_t TokenTrie::tokens_end(size_t node) const {
  return node + 1 < nodes_.size() ? nodes_[node + 1].first_token
                                  : static_cast<int32_t>(tokens_.size());
}

}  // namespace snug::text
