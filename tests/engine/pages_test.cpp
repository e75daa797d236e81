// Pages of keys and values, rule by rule: in which order a pool gives them, which beginnings are
// known, what a sequence has and gives back, and how many pages it may come to need.
#include <gtest/gtest.h>

#include <numeric>

#include "base/captured_stream.h"
#include "engine/pages/sequence_pages.h"

namespace snug::engine {
namespace {

using testing::dies;
using Ids = std::vector<int32_t>;

Ids counted(int32_t first, int64_t count) {
  Ids ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

Ids joined(Ids ids, const Ids& more) {
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

// Pages of 4 tokens and chunks of 8 in sequences of at most 40.
PagesShape shape_of(std::vector<PageGroup> groups) {
  return {.page_tokens = 4,
          .sequences = 4,
          .sequence_tokens = 40,
          .chunk_tokens = 8,
          .groups = std::move(groups)};
}

Ids table_of(const SequencePages& pages, int64_t sequence, int64_t group) {
  Ids row(static_cast<size_t>(pages.pages_per_sequence()));
  pages.fill_table(sequence, group, row);
  while (!row.empty() && row.back() == kNoPage) row.pop_back();
  return row;
}

// Reads the part of a prompt that is not shared, in chunks. False where there is no room for it.
bool read_prompt(SequencePages& pages, int64_t sequence, std::span<const int32_t> prompt) {
  for (auto rest = prompt.subspan(static_cast<size_t>(pages.length(sequence))); !rest.empty();) {
    const auto chunk =
        rest.first(std::min(rest.size(), static_cast<size_t>(pages.shape().chunk_tokens)));
    if (!pages.grow(sequence, chunk)) return false;
    pages.written(sequence);
    rest = rest.subspan(chunk.size());
  }
  return true;
}

// Enters with a promise of the prompt's pages and reads the prompt. Returns how much was shared.
int64_t enter_and_read(SequencePages& pages, int64_t sequence, const Ids& prompt,
                       const AdapterVersion& adapter = {}) {
  const auto shared = pages.enter(
      sequence, {.prompt = prompt, .promised_tokens = std::ssize(prompt), .adapter = adapter});
  EXPECT_TRUE(shared.has_value());
  EXPECT_TRUE(read_prompt(pages, sequence, prompt));
  return shared.value_or(-1);
}

TEST(PagePool, GivesTheSmallestFreePage) {
  PagePool pool(4);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.take(), 2);
  pool.release(1);
  pool.release(0);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.take(), 3);
  EXPECT_EQ(pool.free(), 0);
  EXPECT_EQ(pool.used(), 4);
}

TEST(PagePool, KeepsFinishedPagesUntilTheyAreForgotten) {
  PagePool pool(3);
  for (int i = 0; i < 3; ++i) pool.finish(pool.take());
  pool.retain(1);
  for (const PageId page : {2, 1, 0}) pool.release(page);
  EXPECT_EQ(pool.kept(), 2);  // page 1 has a user still
  EXPECT_EQ(pool.least_recent(), 2);
  pool.retain(2);  // asked for again, so that page 0 is now the oldest
  pool.release(2);
  EXPECT_EQ(pool.least_recent(), 0);
  pool.forget(0);
  EXPECT_EQ(pool.free(), 1);
  EXPECT_EQ(pool.take(), 0);
  pool.forget(1);  // while it is used
  pool.release(1);
  EXPECT_EQ(pool.free(), 1);
}

TEST(PagePool, StopsAtWrongUse) {
  PagePool pool(1);
  EXPECT_TRUE(dies([&] { pool.release(0); }, "page 0 has no user"));
  EXPECT_TRUE(dies([&] { pool.retain(0); }, "page 0 is free"));
  EXPECT_TRUE(dies([&] { pool.retain(1); }, "page 1 of 1"));
  pool.take();
  EXPECT_TRUE(dies([&] { pool.take(); }, "no free page"));
}

TEST(PageGroup, FirstSeenIsOfTheWindowThatEndsWithTheQuery) {
  EXPECT_EQ(models::first_seen(100, 0), 0);
  EXPECT_EQ(models::first_seen(7, 8), 0);  // positions 0 to 7 are eight
  EXPECT_EQ(models::first_seen(8, 8), 1);
  EXPECT_EQ(models::first_seen(8, 1), 8);
}

// Against every way in which chunks can lie: the most that is held while the tokens of a chunk are
// appended to what the window still needs, `answered` tokens of an answer at once.
void expect_most_pages(int64_t window, int64_t answered) {
  constexpr int64_t kPage = 4;
  constexpr int64_t kChunk = 6;
  for (int64_t prompt = 1; prompt <= 24; ++prompt)
    for (int64_t tokens = prompt; tokens <= 30; ++tokens) {
      int64_t most = 0;
      const auto hold = [&](int64_t length, int64_t end) {
        most = std::max(most,
                        models::pages_of(end, kPage) - models::first_seen(length, window) / kPage);
      };
      for (int64_t length = 0; length < prompt; ++length)
        for (int64_t end = length + 1; end <= std::min(prompt, length + kChunk); ++end)
          hold(length, end);
      for (int64_t length = prompt; length < tokens; ++length)
        hold(length, std::min(tokens, length + answered));
      const int64_t said = models::most_pages(window, {kPage, kChunk, answered},
                                              {.prompt_tokens = prompt, .tokens = tokens});
      EXPECT_GE(said, most) << window << ' ' << prompt << ' ' << tokens;
      EXPECT_LE(said, most + 1) << window << ' ' << prompt << ' ' << tokens;
    }
}

TEST(PageGroup, MostPagesHoldHoweverChunksLie) {
  for (const int64_t window : {0, 1, 2, 4, 5, 9})
    for (const int64_t answered : {1, 5}) expect_most_pages(window, answered);
}

TEST(PrefixIndex, ComparesTokensAdapterAndVersion) {
  const std::vector<PageGroup> groups{{.pages = 8}};
  PrefixIndex index(4, groups);
  const AdapterVersion first{.adapter = 3, .version = 1};
  const EntryId a = index.add(kNoTokens, first, counted(0, 4));
  const EntryId b = index.add(a, first, counted(4, 4));
  EXPECT_EQ(index.add(kNoTokens, first, counted(0, 4)), a);
  EXPECT_TRUE(index.set_page(a, 0, 5));
  EXPECT_TRUE(index.set_page(b, 0, 2));
  EXPECT_FALSE(index.set_page(b, 0, 3));

  EXPECT_EQ(index.longest(counted(0, 9), first).tables, (std::vector<Ids>{{5, 2}}));
  EXPECT_EQ(index.longest(counted(0, 8), first).pages, 1);  // one token must be left over
  EXPECT_EQ(index.longest(counted(0, 4), first).pages, 0);
  EXPECT_EQ(index.longest({}, first).pages, 0);
  EXPECT_EQ(index.longest(joined(counted(0, 7), {0, 0}), first).pages, 1);  // one token differs
  EXPECT_EQ(index.longest(counted(4, 9), first).pages, 0);  // known, but not as a first page
  EXPECT_EQ(index.longest(counted(0, 9), {.adapter = 3, .version = 2}).pages, 0);
  EXPECT_EQ(index.longest(counted(0, 9), {.adapter = 4, .version = 1}).pages, 0);
  EXPECT_EQ(index.longest(counted(0, 9), {}).pages, 0);
}

TEST(PrefixIndex, EveryGroupMustHaveWhatItsNextTokenSees) {
  const std::vector<PageGroup> groups{{.pages = 4}, {.pages = 4, .window = 5}};
  PrefixIndex index(4, groups);
  EntryId entry = kNoTokens;
  for (PageId page = 0; page < 3; ++page) {
    entry = index.add(entry, {}, counted(4 * page, 4));
    index.set_page(entry, 0, page);
    index.set_page(entry, 1, 3 - page);
  }
  const Ids ids = counted(0, 13);
  // The query at 12 sees 8 to 12 in the window: the last page.
  EXPECT_EQ(index.longest(ids, {}).tables, (std::vector<Ids>{{0, 1, 2}, {kNoPage, kNoPage, 1}}));
  index.lose_page(1, 2);  // that of tokens 4 to 7
  EXPECT_EQ(index.longest(ids, {}).pages, 3);
  index.lose_page(1, 1);  // that of tokens 8 to 11: only the first page is left
  EXPECT_EQ(index.longest(ids, {}).tables, (std::vector<Ids>{{0}, {3}}));
  index.lose_page(0, 0);  // the second group has it, but the first does not
  EXPECT_EQ(index.longest(ids, {}).pages, 0);
}

TEST(PrefixIndex, EntriesGoWhenNothingNeedsThem) {
  const std::vector<PageGroup> groups{{.pages = 4}};
  PrefixIndex index(4, groups);
  const EntryId a = index.add(kNoTokens, {}, counted(0, 4));
  const EntryId b = index.add(a, {}, counted(4, 4));
  index.set_page(a, 0, 0);
  index.set_page(b, 0, 1);
  index.pin(b);
  index.lose_page(0, 0);
  index.lose_page(0, 1);
  EXPECT_EQ(index.entries(), 2);  // one is pinned, the other its parent
  index.unpin(b);
  EXPECT_EQ(index.entries(), 0);
}

// What was guessed wrong leaves nothing behind: neither pages nor a beginning that others know.
TEST(SequencePages, ShrinkBeforeTheyAreWritten) {
  SequencePages pages(shape_of({{.pages = 10}, {.pages = 6, .window = 5}}));
  const Ids ids = counted(0, 6);
  ASSERT_EQ(enter_and_read(pages, 0, ids), 0);
  const Ids guessed = counted(6, 7);
  ASSERT_TRUE(pages.promise(0, 20));
  ASSERT_TRUE(pages.grow(0, guessed));
  EXPECT_EQ(table_of(pages, 0, 0), (Ids{0, 1, 2, 3}));
  pages.shrink(0, 5);  // two of seven were right
  EXPECT_EQ(table_of(pages, 0, 0), (Ids{0, 1}));
  EXPECT_EQ(pages.key_bounds(0, 0).end, 8);
  pages.written(0);
  EXPECT_EQ(pages.length(0), 8);
  EXPECT_EQ(pages.pool(0).used(), 2);
  // The query at 8 sees 4 to 8.
  EXPECT_EQ(table_of(pages, 0, 1), (Ids{kNoPage, 1}));
  EXPECT_EQ(pages.index().longest(counted(0, 13), {}).pages, 2);
  ASSERT_TRUE(pages.grow(0, Ids{90}));
  EXPECT_EQ(table_of(pages, 0, 0), (Ids{0, 1, 2}));
  EXPECT_TRUE(dies([&] { pages.shrink(0, 2); }, "has 1 tokens that are not written"));
}

TEST(SequencePages, TablesBoundsAndSlotsFollowAWindow) {
  SequencePages pages(shape_of({{.pages = 10}, {.pages = 6, .window = 5}}));
  const Ids ids = counted(0, 20);
  ASSERT_EQ(pages.enter(0, {.prompt = ids, .promised_tokens = 21}), 0);
  ASSERT_TRUE(read_prompt(pages, 0, ids));
  // The query at 20 sees 16 to 20, so that only the page of 16 to 19 is left.
  EXPECT_EQ(table_of(pages, 0, 0), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(table_of(pages, 0, 1).size(), 5U);
  EXPECT_EQ(table_of(pages, 0, 1)[3], kNoPage);
  EXPECT_EQ(pages.pool(1).used(), 1);
  ASSERT_TRUE(pages.grow(0, Ids{7}));
  EXPECT_EQ(pages.key_bounds(0, 0).begin, 0);
  EXPECT_EQ(pages.key_bounds(0, 1).begin, 16);
  EXPECT_EQ(pages.key_bounds(0, 1).end, 21);
  Ids slots(1);
  pages.fill_slots(0, 0, slots);
  EXPECT_EQ(slots[0], 5 * 4);
  pages.fill_slots(0, 1, slots);
  EXPECT_EQ(slots[0], table_of(pages, 0, 1)[5] * 4);
}

TEST(SequencePages, EqualBeginningsHaveTheSamePages) {
  SequencePages pages(shape_of({{.pages = 12}}));
  const Ids beginning = counted(0, 10);
  EXPECT_EQ(enter_and_read(pages, 0, beginning), 0);
  EXPECT_EQ(enter_and_read(pages, 1, joined(beginning, {70, 71, 72})), 8);
  EXPECT_EQ(table_of(pages, 0, 0), (Ids{0, 1, 2}));
  EXPECT_EQ(table_of(pages, 1, 0), (Ids{0, 1, 3, 4}));
  pages.release(0);
  EXPECT_EQ(pages.pool(0).free(), 8);  // page 2 was not whole
  pages.release(1);
  EXPECT_EQ(pages.pool(0).kept(), 3);
  EXPECT_EQ(enter_and_read(pages, 2, joined(beginning, {70, 71, 72})), 12);
  EXPECT_EQ(enter_and_read(pages, 3, joined(beginning, {70, 71})), 8);  // its last token is read
}

// What an answer wrote is known too: a conversation goes on where it was, and what was preempted
// comes back.
TEST(SequencePages, AnswersAreKnownBeginnings) {
  SequencePages pages(shape_of({{.pages = 12}, {.pages = 12, .window = 6}}));
  Ids ids = counted(0, 5);
  enter_and_read(pages, 0, ids);
  for (int32_t id = 50; id < 60; ++id) {
    ids.push_back(id);
    ASSERT_TRUE(pages.grow(0, Ids{id}));
    pages.written(0);
  }
  pages.release(0);
  EXPECT_EQ(enter_and_read(pages, 1, ids), 12);
}

TEST(SequencePages, WhatHasNoPagesIsNotKnown) {
  SequencePages pages(shape_of({{.pages = 4}}));
  enter_and_read(pages, 0, counted(0, 13));
  pages.release(0);
  EXPECT_EQ(pages.index().entries(), 3);
  const Ids other = counted(100, 16);
  ASSERT_EQ(pages.enter(0, {.prompt = other, .promised_tokens = 16, .shares = false}), 0);
  ASSERT_TRUE(read_prompt(pages, 0, other));
  EXPECT_EQ(pages.index().entries(), 0);
}

TEST(SequencePages, WhatSharesNothingIsSharedByNobody) {
  SequencePages pages(shape_of({{.pages = 12}}));
  const Ids ids = counted(0, 12);
  for (int64_t sequence = 0; sequence < 2; ++sequence) {
    EXPECT_EQ(pages.enter(sequence, {.prompt = ids, .promised_tokens = 12, .shares = false}), 0);
    ASSERT_TRUE(read_prompt(pages, sequence, ids));
    pages.release(sequence);
  }
  EXPECT_EQ(pages.pool(0).free(), 12);
  EXPECT_EQ(pages.index().entries(), 0);
}

TEST(SequencePages, NewWeightsKnowNothing) {
  SequencePages pages(shape_of({{.pages = 12}}));
  const Ids ids = counted(0, 9);
  enter_and_read(pages, 0, ids, {.adapter = 0, .version = 1});
  EXPECT_EQ(enter_and_read(pages, 1, ids, {.adapter = 0, .version = 2}), 0);
  pages.release(1);
  pages.drop_all();
  EXPECT_EQ(pages.pool(0).kept(), 0);
  EXPECT_EQ(enter_and_read(pages, 1, ids, {.adapter = 0, .version = 1}), 0);
  // A sequence that was there goes on, and no other gets its pages.
  ASSERT_TRUE(pages.grow(0, counted(9, 8)));
  pages.written(0);
  pages.release(0);
  EXPECT_EQ(enter_and_read(pages, 2, joined(ids, counted(9, 8)), {.adapter = 0, .version = 1}), 8);
  for (const int64_t sequence : {1, 2}) pages.release(sequence);
  pages.drop_all();
  EXPECT_EQ(pages.pool(0).free(), 12);
}

TEST(SequencePages, KeptPagesAreTakenBackFromTheEndOfTheOldestBeginning) {
  SequencePages pages(shape_of({{.pages = 6}}));
  const Ids first = counted(0, 13);
  enter_and_read(pages, 0, first);
  pages.release(0);
  EXPECT_EQ(pages.pool(0).kept(), 3);
  enter_and_read(pages, 0, counted(100, 16));  // three free pages and one of those
  EXPECT_EQ(table_of(pages, 0, 0), (Ids{3, 4, 5, 2}));
  pages.release(0);
  EXPECT_EQ(enter_and_read(pages, 0, first), 8);
}

TEST(SequencePages, AdmissionKeepsWhatWasPromised) {
  SequencePages pages(shape_of({{.pages = 8}}));
  const Ids prompt = counted(0, 4);
  ASSERT_TRUE(pages.enter(0, {.prompt = prompt, .promised_tokens = 20}));  // 5 pages
  EXPECT_FALSE(pages.enter(1, {.prompt = counted(50, 4), .promised_tokens = 16}));
  EXPECT_TRUE(pages.is_empty(1));
  ASSERT_TRUE(pages.enter(1, {.prompt = counted(50, 4), .promised_tokens = 4}));
  ASSERT_TRUE(read_prompt(pages, 1, counted(50, 12)));  // all that is not promised to the other
  EXPECT_FALSE(pages.grow(1, Ids{1}));
  EXPECT_TRUE(read_prompt(pages, 0, counted(0, 20)));
  EXPECT_FALSE(pages.grow(0, Ids{1}));
  pages.release(0);
  EXPECT_TRUE(pages.grow(1, Ids{1}));
}

TEST(SequencePages, SharedPagesArePromisedOnce) {
  SequencePages pages(shape_of({{.pages = 7}}));
  const Ids prompt = counted(0, 17);
  enter_and_read(pages, 0, prompt);  // 5 pages, of which 4 can be shared
  EXPECT_EQ(pages.enter(1, {.prompt = prompt, .promised_tokens = 20}), 16);
  EXPECT_EQ(pages.enter(2, {.prompt = prompt, .promised_tokens = 20}), 16);
  EXPECT_FALSE(pages.enter(3, {.prompt = prompt, .promised_tokens = 20}));
  pages.release(0);
  EXPECT_EQ(pages.enter(3, {.prompt = prompt, .promised_tokens = 20}), 16);
}

// One that shares a window's pages moves on, while the other stays where it is: the pages are not
// free thereby.
TEST(SequencePages, PromisesHoldWhereAWindowIsShared) {
  SequencePages pages(shape_of({{.pages = 6, .window = 8}}));
  const Ids prompt = counted(0, 9);
  ASSERT_TRUE(pages.enter(0, {.prompt = prompt, .promised_tokens = 12}));
  ASSERT_TRUE(read_prompt(pages, 0, prompt));
  const Ids same = joined(prompt, {1});
  ASSERT_EQ(pages.enter(1, {.prompt = same, .promised_tokens = 40}), 8);
  EXPECT_FALSE(pages.enter(2, {.prompt = same, .promised_tokens = 4}));
  ASSERT_TRUE(read_prompt(pages, 1, same));
  while (pages.length(1) < 40) {
    ASSERT_TRUE(pages.grow(1, Ids{7})) << pages.length(1);
    pages.written(1);
  }
  EXPECT_TRUE(read_prompt(pages, 0, counted(0, 12)));
}

// A sequence that shares nothing may enter with the first part of its prompt alone.
TEST(SequencePages, WhatEntersInPartsCanStillReadInChunks) {
  SequencePages pages(shape_of({{.pages = 6, .window = 8}}));
  const Ids prompt = counted(1, 24);
  const std::span<const int32_t> part = std::span(prompt).first(1);
  ASSERT_TRUE(pages.enter(0, {.prompt = part, .promised_tokens = 40, .shares = false}));
  // Six pages are enough for one that reads in chunks of 8, and not for two.
  EXPECT_FALSE(pages.enter(1, {.prompt = part, .promised_tokens = 40, .shares = false}));
  EXPECT_TRUE(read_prompt(pages, 0, prompt));
}

TEST(SequencePages, NothingHappensWhereOneGroupIsShort) {
  SequencePages pages(shape_of({{.pages = 8}, {.pages = 2, .window = 16}}));
  EXPECT_FALSE(pages.enter(0, {.prompt = counted(0, 9), .promised_tokens = 9}));
  EXPECT_FALSE(pages.can_ever_enter({.prompt_tokens = 9, .tokens = 9}));
  EXPECT_TRUE(pages.can_ever_enter({.prompt_tokens = 8, .tokens = 8}));
  EXPECT_FALSE(pages.can_ever_enter({.prompt_tokens = 8, .tokens = 41}));
  enter_and_read(pages, 0, counted(0, 8));
  EXPECT_FALSE(pages.grow(0, Ids{8}));
  EXPECT_EQ(pages.pool(0).used(), 2);
  EXPECT_EQ(table_of(pages, 0, 0).size(), 2U);
}

}  // namespace
}  // namespace snug::engine
