// The tokens of a vocabulary by their bytes, as one tree in the order of a walk through it: all
// tokens that begin alike are passed over together. Immutable; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace snug::text {

class TokenTrie {
 public:
  struct Node {
    uint8_t byte = 0;
    uint16_t depth = 0;       // bytes of the beginning that the node stands for, its own included
    int32_t end = 0;          // the node after all that begin with this one
    int32_t first_token = 0;  // of those that are this beginning; they end at the next node's first
  };

  // Tokens whose bytes depend on their neighbours, special ones and those without a text are in no
  // node. Throws UserError for a tokenizer without tokens of known bytes.
  explicit TokenTrie(const Tokenizer& tokenizer);
  // Tokens by their ids; an empty text is no token.
  explicit TokenTrie(std::vector<std::string> bytes_of_ids);

  const std::vector<Node>& nodes() const { return nodes_; }  // without the root, by bytes
  int32_t tokens_end(size_t node) const;
  // In the order of the nodes.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  const std::string& bytes_of(int32_t id) const { return bytes_[static_cast<size_t>(id)]; }
  int32_t id_end() const { return static_cast<int32_t>(bytes_.size()); }
  size_t depth() const { return depth_; }  // of the deepest node
  // Whether a token is this byte alone.
  bool has_byte(uint8_t byte) const { return has_byte_[byte]; }

 private:
  std::vector<std::string> bytes_;
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;
  size_t depth_ = 0;
  std::array<bool, 256> has_byte_{};
};

}  // namespace snug::text
