#include "engine/pages/sequence_pages.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace snug::engine {

SequencePages::SequencePages(PagesShape shape)
    : shape_(std::move(shape)),
      index_(shape_.page_tokens, shape_.groups),
      sequences_(static_cast<size_t>(shape_.sequences)) {
  SNUG_CHECK(shape_.page_tokens > 0 && shape_.chunk_tokens > 0, "pages of {} tokens, chunks of {}",
             shape_.page_tokens, shape_.chunk_tokens);
  pools_.reserve(shape_.groups.size());
  for (const PageGroup& group : shape_.groups) pools_.emplace_back(group.pages);
}

const SequencePages::Sequence& SequencePages::at(int64_t sequence) const {
  SNUG_CHECK(sequence >= 0 && sequence < std::ssize(sequences_), "sequence {} of {}", sequence,
             sequences_.size());
  return sequences_[static_cast<size_t>(sequence)];
}

SequencePages::Sequence& SequencePages::at(int64_t sequence) {
  return const_cast<Sequence&>(std::as_const(*this).at(sequence));
}

const SequencePages::Table& SequencePages::table_of(int64_t sequence, int64_t group) const {
  const Sequence& it = at(sequence);
  SNUG_CHECK(it.is_here && group >= 0 && group < std::ssize(it.tables),
             "no sequence {} in group {}", sequence, group);
  return it.tables[static_cast<size_t>(group)];
}

bool SequencePages::can_ever_enter(const models::SequenceGrowth& growth) const {
  return growth.tokens <= shape_.sequence_tokens &&
         std::all_of(shape_.groups.begin(), shape_.groups.end(), [&](const PageGroup& group) {
           return models::most_pages(group.window, page_sizes(), growth) <= group.pages;
         });
}

bool SequencePages::is_being_read(const EnteringSequence& entering) const {
  const std::span<const int32_t> ids = entering.shareable();
  if (ids.empty()) return false;
  const int64_t known = index_.longest(ids, entering.adapter).pages * shape_.page_tokens;
  return std::ranges::any_of(sequences_, [&](const Sequence& other) {
    if (!other.is_here || !other.entry || other.adapter != entering.adapter) return false;
    const int64_t common = std::ranges::mismatch(ids, other.prompt).in1 - ids.begin();
    const int64_t whole =
        std::min(common, std::ssize(ids) - 1) / shape_.page_tokens * shape_.page_tokens;
    return whole > known && whole > other.length;
  });
}

// How many pages of a group are used or promised. Without a window a sequence gives nothing back
// until it ends, so a page that several use counts once. With one it does, and a page that another
// still uses is not free thereby: each sequence counts all of its pages.
int64_t SequencePages::claimed(int64_t group) const {
  const auto g = static_cast<size_t>(group);
  const bool has_window = shape_.groups[g].window > 0;
  int64_t claimed = has_window ? 0 : pools_[g].used();
  for (const Sequence& sequence : sequences_) {
    if (!sequence.is_here) continue;
    const Table& table = sequence.tables[g];
    const int64_t most = std::max(table.promised, table.held());
    claimed += has_window ? most : most - table.held();
  }
  return claimed;
}

// What a sequence that enters with these known pages adds to that.
int64_t SequencePages::claim_of(int64_t group, int64_t promised,
                                std::span<const PageId> known) const {
  const auto g = static_cast<size_t>(group);
  const auto held = static_cast<int64_t>(
      std::count_if(known.begin(), known.end(), [](PageId page) { return page != kNoPage; }));
  const int64_t most = std::max(promised, held);
  if (shape_.groups[g].window > 0) return most;
  return most - held + std::count_if(known.begin(), known.end(), [&](PageId page) {
           return page != kNoPage && pools_[g].users(page) == 0;
         });
}

std::optional<int64_t> SequencePages::enter(int64_t sequence, const EnteringSequence& entering) {
  Sequence& it = at(sequence);
  SNUG_CHECK(!it.is_here, "sequence {} is not empty", sequence);
  const models::SequenceGrowth growth = entering.growth();
  KnownBeginning known = index_.longest(entering.shareable(), entering.adapter);
  std::vector<Table> tables(pools_.size());
  for (size_t g = 0; g < pools_.size(); ++g) {
    const auto group = static_cast<int64_t>(g);
    Table& table = tables[g];
    table.pages = std::move(known.tables[g]);
    table.first = std::count(table.pages.begin(), table.pages.end(), kNoPage);
    table.promised = models::most_pages(shape_.groups[g].window, page_sizes(), growth);
    if (claimed(group) + claim_of(group, table.promised, table.pages) > pools_[g].pages())
      return std::nullopt;
  }
  for (size_t g = 0; g < pools_.size(); ++g)
    for (const PageId page : tables[g].pages)
      if (page != kNoPage) pools_[g].retain(page);
  const int64_t tokens = known.pages * shape_.page_tokens;
  it = {.is_here = true,
        .length = tokens,
        .end = tokens,
        .adapter = entering.adapter,
        .prompt_tokens = growth.prompt_tokens,
        .prompt = {},
        .entry = entering.shares ? std::optional(known.entry) : std::nullopt,
        .unshared = {},
        .tables = std::move(tables)};
  if (!it.entry) return tokens;
  it.prompt.assign(entering.prompt.begin(), entering.prompt.end());
  index_.pin(*it.entry);
  return tokens;
}

// Whether a table can have so many pages in all without those that others use or are promised.
bool SequencePages::has_room(int64_t group, const Table& table, int64_t needed) const {
  const int64_t most = std::max(table.held(), table.promised);
  return claimed(group) + std::max(needed, most) - most <= pool(group).pages();
}

bool SequencePages::promise(int64_t sequence, int64_t tokens) {
  Sequence& it = at(sequence);
  SNUG_CHECK(it.is_here, "no sequence {}", sequence);
  std::vector<int64_t> promised;
  for (size_t g = 0; g < pools_.size(); ++g) {
    promised.push_back(
        models::most_pages(shape_.groups[g].window, page_sizes(), {it.prompt_tokens, tokens}));
    if (!has_room(static_cast<int64_t>(g), it.tables[g], promised.back())) return false;
  }
  for (size_t g = 0; g < pools_.size(); ++g)
    it.tables[g].promised = std::max(it.tables[g].promised, promised[g]);
  return true;
}

bool SequencePages::grow(int64_t sequence, std::span<const int32_t> ids) {
  Sequence& it = at(sequence);
  SNUG_CHECK(it.is_here && it.length == it.end, "sequence {} cannot grow now", sequence);
  const int64_t end = it.end + std::ssize(ids);
  SNUG_CHECK(std::ssize(ids) <= shape_.chunk_tokens && end <= shape_.sequence_tokens,
             "sequence {} grows by {} tokens to {}, but a chunk has {} and a sequence {}", sequence,
             ids.size(), end, shape_.chunk_tokens, shape_.sequence_tokens);
  const int64_t pages = models::pages_of(end, shape_.page_tokens);
  for (size_t g = 0; g < pools_.size(); ++g) {
    const int64_t more = pages - std::ssize(it.tables[g].pages);
    if (more > 0 && !has_room(static_cast<int64_t>(g), it.tables[g], it.tables[g].held() + more))
      return false;
  }
  for (size_t g = 0; g < pools_.size(); ++g)
    while (std::ssize(it.tables[g].pages) < pages) take_page(static_cast<int64_t>(g), it.tables[g]);
  it.end = end;
  if (it.entry) it.unshared.insert(it.unshared.end(), ids.begin(), ids.end());
  return true;
}

void SequencePages::take_page(int64_t group, Table& table) {
  PagePool& pool = pools_[static_cast<size_t>(group)];
  if (pool.free() == 0) {
    const PageId page = pool.least_recent();
    index_.lose_page(group, page);
    pool.forget(page);
  }
  table.pages.push_back(pool.take());
}

void SequencePages::shrink(int64_t sequence, int64_t tokens) {
  Sequence& it = at(sequence);
  SNUG_CHECK(it.is_here && tokens >= 0 && it.length + tokens <= it.end,
             "sequence {} has {} tokens that are not written, and shrinks by {}", sequence,
             it.end - it.length, tokens);
  it.end -= tokens;
  const int64_t pages = models::pages_of(it.end, shape_.page_tokens);
  for (size_t g = 0; g < pools_.size(); ++g)
    for (Table& table = it.tables[g]; std::ssize(table.pages) > pages; table.pages.pop_back())
      pools_[g].release(table.pages.back());
  if (it.entry) it.unshared.resize(it.unshared.size() - static_cast<size_t>(tokens));
}

void SequencePages::written(int64_t sequence) {
  Sequence& it = at(sequence);
  SNUG_CHECK(it.is_here, "no sequence {}", sequence);
  it.length = it.end;
  while (std::ssize(it.unshared) >= shape_.page_tokens) publish_page(it);
  give_back(it);
}

// Makes the first page of tokens that is not shared yet known. A group in which the same tokens
// have a page already goes on with that one; the sequence keeps its own, for itself.
void SequencePages::publish_page(Sequence& sequence) {
  const auto page =
      static_cast<size_t>((sequence.length - std::ssize(sequence.unshared)) / shape_.page_tokens);
  const auto tokens = std::span(sequence.unshared).first(static_cast<size_t>(shape_.page_tokens));
  const EntryId entry = index_.add(*sequence.entry, sequence.adapter, tokens);
  for (size_t g = 0; g < pools_.size(); ++g) {
    const PageId its_page = sequence.tables[g].pages[page];
    if (index_.set_page(entry, static_cast<int64_t>(g), its_page)) pools_[g].finish(its_page);
  }
  index_.pin(entry);
  index_.unpin(std::exchange(*sequence.entry, entry));
  sequence.unshared.erase(sequence.unshared.begin(),
                          sequence.unshared.begin() + shape_.page_tokens);
}

// Gives back the pages that no token after those that are written sees.
void SequencePages::give_back(Sequence& sequence) {
  for (size_t g = 0; g < pools_.size(); ++g) {
    Table& table = sequence.tables[g];
    const int64_t first =
        models::first_seen(sequence.length, shape_.groups[g].window) / shape_.page_tokens;
    for (; table.first < first; ++table.first)
      pools_[g].release(std::exchange(table.pages[static_cast<size_t>(table.first)], kNoPage));
  }
}

// The last page of a sequence goes first, so that the pool takes the end of a beginning before what
// it begins with.
void SequencePages::release(int64_t sequence) {
  Sequence& it = at(sequence);
  SNUG_CHECK(it.is_here, "no sequence {}", sequence);
  for (size_t g = 0; g < pools_.size(); ++g)
    for (Table& table = it.tables[g]; table.held() > 0; table.pages.pop_back())
      pools_[g].release(table.pages.back());
  if (it.entry) index_.unpin(*it.entry);
  it = {};
}

void SequencePages::drop_all() {
  index_.clear();
  for (Sequence& sequence : sequences_) {
    sequence.entry.reset();
    sequence.unshared.clear();
  }
  for (PagePool& pool : pools_)
    for (PageId page = 0; page < pool.pages(); ++page)
      if (pool.is_finished(page)) pool.forget(page);
}

Positions SequencePages::key_bounds(int64_t sequence, int64_t group) const {
  return {table_of(sequence, group).first * shape_.page_tokens, at(sequence).end};
}

void SequencePages::fill_table(int64_t sequence, int64_t group, std::span<int32_t> row) const {
  const std::vector<PageId>& pages = table_of(sequence, group).pages;
  SNUG_CHECK_EQ(std::ssize(row), pages_per_sequence());
  std::fill(std::copy(pages.begin(), pages.end(), row.begin()), row.end(), kNoPage);
}

void SequencePages::fill_slots(int64_t sequence, int64_t group, std::span<int32_t> slots) const {
  const Table& table = table_of(sequence, group);
  const int64_t begin = at(sequence).length;
  SNUG_CHECK_EQ(std::ssize(slots), at(sequence).end - begin);
  for (size_t i = 0; i < slots.size(); ++i) {
    const int64_t position = begin + static_cast<int64_t>(i);
    const PageId page = table.pages[static_cast<size_t>(position / shape_.page_tokens)];
    SNUG_CHECK(pool(group).users(page) == 1 && !pool(group).is_finished(page),
               "page {} is shared and must not be written", page);
    slots[i] = static_cast<int32_t>(page * shape_.page_tokens + position % shape_.page_tokens);
  }
}

}  // namespace snug::engine
