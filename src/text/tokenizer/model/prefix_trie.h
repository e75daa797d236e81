// A trie over bytes that finds all tokens with which a text begins. Its nodes are stored level by
// level, with the children of a node adjacent and in the order of their bytes. Built once, then
// read from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer/model/vocabulary.h"

namespace snug::text {

class PrefixTrie {
 public:
  // Contains all tokens of `vocabulary` that are not empty.
  explicit PrefixTrie(const Vocabulary& vocabulary);

  // Calls visit(size, id) for each token with which `text` begins, the shortest first.
  template <typename Visit>
  void visit_prefixes(std::string_view text, const Visit& visit) const {
    if (text.empty()) return;
    int32_t node = roots_[static_cast<unsigned char>(text[0])];
    for (size_t size = 1; node >= 0; ++size) {
      if (nodes_[node].id >= 0) visit(size, nodes_[node].id);
      if (size == text.size()) return;
      node = child_of(node, static_cast<unsigned char>(text[size]));
    }
  }

  int64_t host_bytes() const { return static_cast<int64_t>(nodes_.capacity() * sizeof(Node)); }

 private:
  struct Node {
    int32_t id = -1;  // of the token that ends here
    int32_t first_child = 0;
    uint16_t children = 0;
    uint8_t byte = 0;  // the byte that leads to this node
  };

  int32_t child_of(int32_t node, uint8_t byte) const {
    const Node& parent = nodes_[node];
    int32_t low = parent.first_child;
    int32_t high = low + parent.children;
    while (low < high) {
      const int32_t middle = low + (high - low) / 2;
      if (nodes_[middle].byte < byte)
        low = middle + 1;
      else
        high = middle;
    }
    const bool is_found = low < parent.first_child + parent.children && nodes_[low].byte == byte;
    return is_found ? low : -1;
  }

  std::vector<Node> nodes_;
  std::array<int32_t, 256> roots_{};
};

}  // namespace snug::text
