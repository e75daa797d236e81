#include "text/tokenizer/model/prefix_trie.h"

#include <algorithm>
#include <deque>

namespace snug::text {
namespace {

// The tokens [begin, end) of the sorted list, which share their first `size` bytes; these lead to
// `node`.
struct SharedPrefix {
  size_t begin;
  size_t end;
  size_t size;
  int32_t node;
};

}  // namespace

PrefixTrie::PrefixTrie(const Vocabulary& vocabulary) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocabulary.id_end(); ++id)
    if (!vocabulary.token(id).empty()) ids.push_back(id);
  std::sort(ids.begin(), ids.end(),
            [&](int32_t a, int32_t b) { return vocabulary.token(a) < vocabulary.token(b); });
  nodes_.emplace_back();
  std::deque<SharedPrefix> waiting = {{0, ids.size(), 0, 0}};
  for (; !waiting.empty(); waiting.pop_front()) {
    auto [begin, end, size, node] = waiting.front();
    // A token that ends here comes first.
    if (size > 0 && begin < end && vocabulary.token(ids[begin]).size() == size)
      nodes_[node].id = ids[begin++];
    nodes_[node].first_child = static_cast<int32_t>(nodes_.size());
    while (begin < end) {
      const auto byte_of = [&, place = size](int32_t id) {
        return static_cast<uint8_t>(vocabulary.token(id)[place]);
      };
      const uint8_t byte = byte_of(ids[begin]);
      size_t next = begin + 1;
      while (next < end && byte_of(ids[next]) == byte) ++next;
      ++nodes_[node].children;
      waiting.push_back({begin, next, size + 1, static_cast<int32_t>(nodes_.size())});
      nodes_.push_back({.byte = byte});
      begin = next;
    }
  }
  nodes_.shrink_to_fit();
  for (size_t byte = 0; byte < roots_.size(); ++byte)
    roots_[byte] = child_of(0, static_cast<uint8_t>(byte));
}

}  // namespace snug::text
