// Which beginnings of sequences have their keys and values in pages, in all groups of a model
// together. An entry is one whole page of tokens after those of its parent; it has a page in each
// group, until the group's pool needs that page for something else. A beginning of n pages can be
// shared if every group has what its next token sees: without a window all n pages, with one those
// that the window reaches. Tokens are compared, never hashes of them. Not thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/pages/page_group.h"
#include "engine/pages/page_pool.h"

namespace snug::engine {

// With which weights keys were made. Where an adapter's weights change it gets another version;
// where the model's do, the index is cleared.
struct AdapterVersion {
  int64_t adapter = -1;  // its slot; -1: the model alone
  int64_t version = 0;
  auto operator<=>(const AdapterVersion&) const = default;
};

using EntryId = int64_t;                  // never used a second time
inline constexpr EntryId kNoTokens = -1;  // the parent of a first page

struct KnownBeginning {
  EntryId entry = kNoTokens;  // of its last page
  int64_t pages = 0;
  std::vector<std::vector<PageId>> tables;  // (groups, pages), kNoPage before a window
};

class PrefixIndex {
 public:
  PrefixIndex(int64_t page_tokens, std::span<const PageGroup> groups);

  // The longest beginning of `ids` that can be shared. At least one token is left over: the logits
  // of the last one are needed.
  KnownBeginning longest(std::span<const int32_t> ids, const AdapterVersion& adapter) const;

  // The entry of a whole page of tokens after `parent`: the one that is known, or a new one.
  EntryId add(EntryId parent, const AdapterVersion& adapter, std::span<const int32_t> tokens);
  // Gives an entry its page in a group. False, with nothing done, where it has one.
  bool set_page(EntryId entry, int64_t group, PageId page);
  // An entry's page in a group is needed for something else.
  void lose_page(int64_t group, PageId page);

  // An entry stays while it is pinned, is the parent of another, or has a page.
  void pin(EntryId entry);
  void unpin(EntryId entry);

  // Forgets all, pinned ones too.
  void clear();
  int64_t entries() const { return std::ssize(entries_); }

 private:
  struct Key {
    EntryId parent = kNoTokens;
    AdapterVersion adapter;
    std::vector<int32_t> tokens;
    auto operator<=>(const Key&) const = default;
  };
  using Places = std::map<Key, EntryId>;
  struct Entry {
    Places::iterator place;
    std::vector<PageId> pages;  // (groups)
    int64_t children = 0;
    int64_t pins = 0;
  };
  std::vector<EntryId> known_entries(std::span<const int32_t> ids,
                                     const AdapterVersion& adapter) const;
  int64_t usable_pages(std::span<const EntryId> entries) const;
  void remove_unneeded(EntryId entry);

  int64_t page_tokens_ = 0;
  std::vector<PageGroup> groups_;
  Places places_;
  std::unordered_map<EntryId, Entry> entries_;
  std::vector<std::vector<EntryId>> entry_of_page_;  // (groups, pages)
  EntryId next_ = 0;
};

}  // namespace snug::engine
