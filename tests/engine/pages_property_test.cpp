// Random sequences enter, grow, share, leave, are cancelled and preempted while pools run short and
// weights change. A model of the pools' rows holds for each row what was written there last: a
// number made of all tokens up to that position and of the weights, as keys are. After every
// operation each sequence must read its own numbers through its tables, and every page must be
// accounted for.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>

#include "engine/pages/sequence_pages.h"

namespace snug::engine {
namespace {

using Number = uint64_t;

struct Weights {
  AdapterVersion adapter;
  int64_t base = 0;  // the version of the model's own
};

Number key_after(Number before, int32_t token, const Weights& weights) {
  Number number = before;
  for (const int64_t value :
       {int64_t{token}, weights.adapter.adapter, weights.adapter.version, weights.base})
    number = (number ^ static_cast<Number>(value + 17)) * 0x9E3779B97F4A7C15ULL;
  return number ^ (number >> 29);
}

struct Waiting {
  std::vector<int32_t> ids;
  AdapterVersion adapter;
};

struct Live {
  std::vector<int32_t> ids;  // those that it has to read, then those that it answered with
  std::vector<Number> keys;  // of the tokens that are written or shared
  AdapterVersion adapter;
  int64_t prompt_tokens = 0;
  int64_t promised_tokens = 0;
  int64_t growing = 0;  // tokens of a grow() that are not written yet
};

// How often something happened, so that a test can ask for it.
struct Seen {
  int64_t shared_tokens = 0;
  int64_t refused_entries = 0;
  int64_t refused_growth = 0;
  int64_t refused_promises = 0;
  int64_t preempted = 0;
  int64_t cancelled_while_growing = 0;
  int64_t dropped = 0;
  int64_t taken_back = 0;
  bool operator==(const Seen&) const = default;
};

class Play {
 public:
  Play(PagesShape shape, uint32_t seed)
      : pages_(std::move(shape)),
        random_(seed),
        live_(static_cast<size_t>(pages_.shape().sequences)) {
    for (const PageGroup& group : pages_.shape().groups)
      rows_.emplace_back(static_cast<size_t>(group.pages * pages_.shape().page_tokens), 0);
  }

  void run(int64_t operations) {
    for (int64_t i = 0; i < operations && !::testing::Test::HasFailure(); ++i) {
      operate();
      check();
    }
  }

  // Everything leaves; then every page must be free.
  void end() {
    for (int64_t sequence = 0; sequence < std::ssize(live_); ++sequence)
      if (live(sequence)) leave(sequence);
    check();
    for (int64_t group = 0; group < groups(); ++group) EXPECT_EQ(pages_.pool(group).used(), 0);
    pages_.drop_all();
    EXPECT_EQ(pages_.index().entries(), 0);
    for (int64_t group = 0; group < groups(); ++group)
      EXPECT_EQ(pages_.pool(group).free(), pages_.pool(group).pages());
  }

  const Seen& seen() const { return seen_; }
  // All slots that were given, in order.
  const std::vector<int32_t>& given_slots() const { return given_slots_; }

 private:
  int64_t groups() const { return std::ssize(pages_.shape().groups); }
  int64_t below(int64_t end) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(end));
  }
  std::optional<Live>& live(int64_t sequence) { return live_[static_cast<size_t>(sequence)]; }

  void operate() {
    const int64_t sequence = below(std::ssize(live_));
    const int64_t draw = below(1000);
    if (draw < 4) {
      pages_.drop_all();
      ++base_;
      ++seen_.dropped;
    } else if (draw < 12) {
      ++versions_[static_cast<size_t>(below(2))];
    } else if (!live(sequence)) {
      enter(sequence);
    } else if (live(sequence)->growing > 0) {
      if (draw < 60) {
        ++seen_.cancelled_while_growing;
        leave(sequence);
      } else {
        write(sequence);
      }
    } else if (draw < 30) {
      leave(sequence);
    } else if (draw < 60) {
      preempt(sequence);
    } else if (draw < 160) {
      promise(sequence);
    } else {
      grow(sequence);
    }
  }

  // A beginning of one of three texts, then tokens of its own; or what was preempted.
  Waiting next_request() {
    if (!waiting_.empty() && below(2) == 0) {
      Waiting next = std::move(waiting_.back());
      waiting_.pop_back();
      return next;
    }
    Waiting next;
    const int64_t text = below(3);
    const int64_t most = pages_.shape().sequence_tokens;
    const int64_t beginning = below(most * 2 / 3);
    for (int64_t i = 0; i < beginning; ++i)
      next.ids.push_back(static_cast<int32_t>(i * i % 7 + 10 * text));
    for (int64_t i = below(5); i >= 0; --i) next.ids.push_back(static_cast<int32_t>(below(3)));
    const int64_t adapter = below(3) - 1;
    next.adapter = {adapter, adapter < 0 ? 0 : versions_[static_cast<size_t>(adapter)]};
    return next;
  }

  void enter(int64_t sequence) {
    Waiting next = next_request();
    const auto prompt = std::ssize(next.ids);
    const int64_t room = pages_.shape().sequence_tokens - prompt;
    const int64_t promised = below(4) == 0 ? below(prompt + 1) : prompt + below(room + 1);
    const auto shared = pages_.enter(
        sequence, {.prompt = next.ids, .promised_tokens = promised, .adapter = next.adapter});
    if (!shared) {
      ++seen_.refused_entries;
      check_refusal({prompt, promised});
      return;
    }
    ASSERT_LT(*shared, prompt);
    ASSERT_EQ(*shared % pages_.shape().page_tokens, 0);
    seen_.shared_tokens += *shared;
    live(sequence) = Live{.ids = std::move(next.ids),
                          .keys = {},
                          .adapter = next.adapter,
                          .prompt_tokens = prompt,
                          .promised_tokens = promised};
    append_keys(*live(sequence), *shared);
  }

  // Nobody is refused where nobody else is.
  void check_refusal(const models::SequenceGrowth& growth) {
    const bool alone = std::none_of(live_.begin(), live_.end(),
                                    [](const std::optional<Live>& one) { return one.has_value(); });
    EXPECT_FALSE(alone && pages_.can_ever_enter(growth));
  }

  void append_keys(Live& it, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      it.keys.push_back(key_after(it.keys.empty() ? 0 : it.keys.back(), it.ids[it.keys.size()],
                                  {it.adapter, base_}));
  }

  // From then on it grows so far without a refusal.
  void promise(int64_t sequence) {
    Live& it = *live(sequence);
    const int64_t tokens = 1 + below(pages_.shape().sequence_tokens);
    if (pages_.promise(sequence, tokens))
      it.promised_tokens = std::max(it.promised_tokens, tokens);
    else
      ++seen_.refused_promises;
  }

  // A chunk of what is to be read, or one token of an answer.
  void grow(int64_t sequence) {
    Live& it = *live(sequence);
    const auto length = std::ssize(it.keys);
    if (length == pages_.shape().sequence_tokens) return leave(sequence);
    if (length == std::ssize(it.ids)) it.ids.push_back(static_cast<int32_t>(below(3)));
    const int64_t rest = std::ssize(it.ids) - length;
    const int64_t count = 1 + below(std::min(rest, pages_.shape().chunk_tokens));
    const auto ids = std::span(it.ids).subspan(static_cast<size_t>(length));
    if (pages_.grow(sequence, ids.first(static_cast<size_t>(count)))) {
      it.growing = count;
      return;
    }
    ++seen_.refused_growth;
    EXPECT_GT(length + count, it.promised_tokens) << "what was promised was refused";
    if (below(2) == 0) preempt(sequence);
  }

  void write(int64_t sequence) {
    Live& it = *live(sequence);
    const auto begin = it.keys.size();
    append_keys(it, it.growing);
    for (int64_t group = 0; group < groups(); ++group) {
      std::vector<int32_t> slots(static_cast<size_t>(it.growing));
      pages_.fill_slots(sequence, group, slots);
      for (size_t i = 0; i < slots.size(); ++i)
        rows_[static_cast<size_t>(group)].at(static_cast<size_t>(slots[i])) = it.keys[begin + i];
      given_slots_.insert(given_slots_.end(), slots.begin(), slots.end());
    }
    const int64_t wrong = below(4) == 0 ? below(it.growing) : 0;  // of what was guessed
    const auto kept = it.keys.size() - static_cast<size_t>(wrong);
    it.growing = 0;
    check_reads(sequence, static_cast<int64_t>(begin));  // as the run does that writes them
    pages_.shrink(sequence, wrong);
    it.keys.resize(kept);
    seen_.taken_back += wrong;
    pages_.written(sequence);
  }

  void leave(int64_t sequence) {
    pages_.release(sequence);
    live(sequence).reset();
  }

  void preempt(int64_t sequence) {
    Live& it = *live(sequence);
    // It comes again with the weights of that time.
    const auto adapter = it.adapter.adapter;
    waiting_.push_back(
        {std::move(it.ids), {adapter, adapter < 0 ? 0 : versions_[static_cast<size_t>(adapter)]}});
    ++seen_.preempted;
    leave(sequence);
  }

  // All that queries at `first_query` and after it see, and all else that the bounds name.
  void check_reads(int64_t sequence, int64_t first_query) {
    const Live& it = *live(sequence);
    const int64_t page_tokens = pages_.shape().page_tokens;
    std::vector<int32_t> row(static_cast<size_t>(pages_.pages_per_sequence()));
    for (int64_t group = 0; group < groups(); ++group) {
      const auto g = static_cast<size_t>(group);
      pages_.fill_table(sequence, group, row);
      const Positions bounds = pages_.key_bounds(sequence, group);
      ASSERT_EQ(bounds.end, std::ssize(it.keys) + it.growing);
      ASSERT_LE(bounds.begin, models::first_seen(first_query, pages_.shape().groups[g].window));
      for (int64_t position = bounds.begin; position < std::ssize(it.keys); ++position) {
        const int64_t page = row[static_cast<size_t>(position / page_tokens)];
        ASSERT_NE(page, kNoPage);
        const auto at = static_cast<size_t>(page * page_tokens + position % page_tokens);
        ASSERT_EQ(rows_[g][at], it.keys[static_cast<size_t>(position)])
            << "sequence " << sequence << ", group " << group << ", position " << position;
      }
    }
  }

  void check() {
    for (int64_t sequence = 0; sequence < std::ssize(live_); ++sequence)
      if (live(sequence)) check_reads(sequence, std::ssize(live(sequence)->keys));
    for (int64_t group = 0; group < groups(); ++group) check_users(group);
  }

  // A page has as many users as tables name it, and one more than one only when it is finished.
  void check_users(int64_t group) {
    const PagePool& pool = pages_.pool(group);
    std::vector<int64_t> users(static_cast<size_t>(pool.pages()), 0);
    std::vector<int32_t> row(static_cast<size_t>(pages_.pages_per_sequence()));
    for (int64_t sequence = 0; sequence < std::ssize(live_); ++sequence) {
      if (!live(sequence)) continue;
      pages_.fill_table(sequence, group, row);
      for (const PageId page : row)
        if (page != kNoPage) ++users.at(static_cast<size_t>(page));
    }
    int64_t used = 0;
    for (PageId page = 0; page < pool.pages(); ++page) {
      const int64_t count = users[static_cast<size_t>(page)];
      ASSERT_EQ(pool.users(page), count) << "page " << page << " of group " << group;
      used += count > 0 ? 1 : 0;
    }
    ASSERT_EQ(pool.used(), used);
  }

  SequencePages pages_;
  std::mt19937 random_;
  std::vector<std::optional<Live>> live_;
  std::vector<Waiting> waiting_;
  std::vector<std::vector<Number>> rows_;  // (groups, rows of a pool)
  std::array<int64_t, 2> versions_{};      // of adapters 0 and 1
  int64_t base_ = 0;
  std::vector<int32_t> given_slots_;
  Seen seen_;
};

PagesShape full_and_windows() {
  return {.page_tokens = 4,
          .sequences = 6,
          .sequence_tokens = 60,
          .chunk_tokens = 11,
          .groups = {{.pages = 30}, {.pages = 16, .window = 6}, {.pages = 21, .window = 13}}};
}

std::vector<PagesShape> shapes() {
  PagesShape full_only = full_and_windows();
  full_only.groups = {{.pages = 24}};
  PagesShape windows_only = full_and_windows();
  windows_only.groups = {{.pages = 13, .window = 1}, {.pages = 17, .window = 9}};
  PagesShape roomy = full_and_windows();
  roomy.page_tokens = 2;
  roomy.groups = {{.pages = 300}, {.pages = 150, .window = 3}};
  return {full_and_windows(), full_only, windows_only, roomy};
}

TEST(PagesProperty, RandomOperationsLeakNothingAndMixNothingUp) {
  Seen sum;
  for (const PagesShape& shape : shapes()) {
    Play play(shape, static_cast<uint32_t>(shape.groups[0].pages));
    play.run(10'000);
    play.end();
    if (HasFailure()) return;
    sum.shared_tokens += play.seen().shared_tokens;
    sum.refused_entries += play.seen().refused_entries;
    sum.refused_growth += play.seen().refused_growth;
    sum.refused_promises += play.seen().refused_promises;
    sum.preempted += play.seen().preempted;
    sum.cancelled_while_growing += play.seen().cancelled_while_growing;
    sum.taken_back += play.seen().taken_back;
    EXPECT_GT(play.seen().shared_tokens, 500);
    EXPECT_GT(play.seen().dropped, 10);
  }
  EXPECT_GT(sum.refused_entries, 1000);
  EXPECT_GT(sum.refused_growth, 100);
  EXPECT_GT(sum.refused_promises, 100);
  EXPECT_GT(sum.preempted, 100);
  EXPECT_GT(sum.cancelled_while_growing, 100);
  EXPECT_GT(sum.taken_back, 100);
}

TEST(PagesProperty, TheSameOperationsGiveTheSamePages) {
  Play first(full_and_windows(), 7);
  Play second(full_and_windows(), 7);
  first.run(1000);
  second.run(1000);
  EXPECT_EQ(first.given_slots(), second.given_slots());
  EXPECT_EQ(first.seen(), second.seen());
  EXPECT_FALSE(first.given_slots().empty());
}

}  // namespace
}  // namespace snug::engine
