#include "engine/pages/prefix_index.h"

#include <algorithm>

#include "base/error.h"
#include "models/forward/key_pages.h"

namespace snug::engine {

PrefixIndex::PrefixIndex(int64_t page_tokens, std::span<const PageGroup> groups)
    : page_tokens_(page_tokens), groups_(groups.begin(), groups.end()) {
  entry_of_page_.reserve(groups.size());
  for (const PageGroup& group : groups)
    entry_of_page_.emplace_back(static_cast<size_t>(group.pages), kNoTokens);
}

// The entries of the whole pages of `ids`, as far as they are known, whatever pages they still
// have.
std::vector<EntryId> PrefixIndex::known_entries(std::span<const int32_t> ids,
                                                const AdapterVersion& adapter) const {
  std::vector<EntryId> entries;
  Key key{.parent = kNoTokens, .adapter = adapter, .tokens = {}};
  const auto page = static_cast<size_t>(page_tokens_);
  while (ids.size() > page) {
    key.tokens.assign(ids.begin(), ids.begin() + page_tokens_);
    const auto place = places_.find(key);
    if (place == places_.end()) break;
    entries.push_back(place->second);
    key.parent = place->second;
    ids = ids.subspan(page);
  }
  return entries;
}

// How many of these pages, which follow each other from a first one, can be shared.
int64_t PrefixIndex::usable_pages(std::span<const EntryId> entries) const {
  std::vector<int64_t> in_succession(groups_.size(), 0);  // pages up to here that a group has
  int64_t usable = 0;
  for (int64_t count = 1; count <= std::ssize(entries); ++count) {
    const Entry& entry = entries_.at(entries[static_cast<size_t>(count - 1)]);
    bool all = true;
    for (size_t group = 0; group < groups_.size(); ++group) {
      in_succession[group] = entry.pages[group] == kNoPage ? 0 : in_succession[group] + 1;
      const int64_t first =
          models::first_seen(count * page_tokens_, groups_[group].window) / page_tokens_;
      all = all && in_succession[group] >= count - first;
    }
    if (all) usable = count;
  }
  return usable;
}

KnownBeginning PrefixIndex::longest(std::span<const int32_t> ids,
                                    const AdapterVersion& adapter) const {
  std::vector<EntryId> entries = known_entries(ids, adapter);
  KnownBeginning known{.pages = usable_pages(entries),
                       .tables = std::vector<std::vector<PageId>>(groups_.size())};
  entries.resize(static_cast<size_t>(known.pages));
  if (!entries.empty()) known.entry = entries.back();
  for (size_t group = 0; group < groups_.size(); ++group) {
    const int64_t first =
        models::first_seen(known.pages * page_tokens_, groups_[group].window) / page_tokens_;
    known.tables[group].assign(entries.size(), kNoPage);
    for (auto i = static_cast<size_t>(first); i < entries.size(); ++i)
      known.tables[group][i] = entries_.at(entries[i]).pages[group];
  }
  return known;
}

EntryId PrefixIndex::add(EntryId parent, const AdapterVersion& adapter,
                         std::span<const int32_t> tokens) {
  SNUG_CHECK_EQ(std::ssize(tokens), page_tokens_);
  Key key{.parent = parent, .adapter = adapter, .tokens = {tokens.begin(), tokens.end()}};
  const auto [place, is_new] = places_.emplace(std::move(key), next_);
  if (!is_new) return place->second;
  if (parent != kNoTokens) ++entries_.at(parent).children;
  entries_.emplace(next_, Entry{.place = place, .pages = std::vector(groups_.size(), kNoPage)});
  return next_++;
}

bool PrefixIndex::set_page(EntryId entry, int64_t group, PageId page) {
  PageId& its_page = entries_.at(entry).pages[static_cast<size_t>(group)];
  if (its_page != kNoPage) return false;
  EntryId& owner = entry_of_page_[static_cast<size_t>(group)][static_cast<size_t>(page)];
  SNUG_CHECK_EQ(owner, kNoTokens);
  its_page = page;
  owner = entry;
  return true;
}

void PrefixIndex::lose_page(int64_t group, PageId page) {
  EntryId& owner = entry_of_page_[static_cast<size_t>(group)][static_cast<size_t>(page)];
  const EntryId entry = owner;
  owner = kNoTokens;
  entries_.at(entry).pages[static_cast<size_t>(group)] = kNoPage;
  remove_unneeded(entry);
}

void PrefixIndex::pin(EntryId entry) {
  if (entry != kNoTokens) ++entries_.at(entry).pins;
}

void PrefixIndex::unpin(EntryId entry) {
  if (entry == kNoTokens) return;
  SNUG_CHECK(entries_.at(entry).pins > 0, "entry {} is not pinned", entry);
  --entries_.at(entry).pins;
  remove_unneeded(entry);
}

// Removes an entry that nothing needs, and then its parents as long as that is so for them.
void PrefixIndex::remove_unneeded(EntryId entry) {
  while (entry != kNoTokens) {
    const auto it = entries_.find(entry);
    const auto& [place, pages, children, pins] = it->second;
    const bool has_page =
        std::any_of(pages.begin(), pages.end(), [](PageId page) { return page != kNoPage; });
    if (children > 0 || pins > 0 || has_page) return;
    const EntryId parent = place->first.parent;
    places_.erase(place);
    entries_.erase(it);
    entry = parent;
    if (entry != kNoTokens) --entries_.at(entry).children;
  }
}

void PrefixIndex::clear() {
  places_.clear();
  entries_.clear();
  for (std::vector<EntryId>& entries : entry_of_page_)
    std::fill(entries.begin(), entries.end(), kNoTokens);
}

}  // namespace snug::engine
