// Who may enter and what runs next, with a model that is played: no executor, no clock.
#include "engine/scheduler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace snug::testing {
namespace {

using engine::Demand;
using engine::RequestId;
using engine::ScheduledRun;
using engine::Scheduler;

Demand of_tokens(int64_t tokens) { return {.tokens = tokens}; }

// Pages that requests take when they enter and give back when they leave.
struct PlayedPages {
  int64_t free = 0;
  std::map<RequestId, int64_t> needed{};
  std::map<RequestId, int64_t> known{};

  engine::Enter enter() {
    return [this](RequestId request, int64_t) -> std::optional<int64_t> {
      if (needed[request] > free) return std::nullopt;
      free -= needed[request];
      return known[request];
    };
  }
};

// "read 3@1[0,8) 4@0[0,2)." for parts, with a full stop after the last part of a prompt; "answer
// 3@1" for tokens.
std::string text_of(const ScheduledRun& run) {
  std::string text = run.parts.empty() ? (run.answering.empty() ? "nothing" : "answer") : "read";
  for (const engine::PromptPart& part : run.parts)
    text += fmt::format(" {}@{}[{},{}){}", part.request, part.sequence, part.first,
                        part.first + part.tokens, part.is_last ? "." : "");
  for (const auto& one : run.answering) text += fmt::format(" {}@{}", one.request, one.sequence);
  return text;
}

TEST(Scheduler, HasNothingToDoWithoutRequests) {
  Scheduler scheduler({.sequences = 2, .prefill_tokens = 8});
  EXPECT_EQ(text_of(scheduler.next()), "nothing");
  scheduler.add(0, of_tokens(3));
  EXPECT_EQ(scheduler.waiting(), 1);
  EXPECT_EQ(scheduler.remove(0), std::nullopt);
  EXPECT_EQ(text_of(scheduler.next()), "nothing");
}

TEST(Scheduler, PromptsFillChunksInTheOrderOfArrival) {
  Scheduler scheduler({.sequences = 4, .prefill_tokens = 8});
  scheduler.add(3, of_tokens(5));
  scheduler.add(4, of_tokens(9));
  scheduler.add(7, of_tokens(2));
  EXPECT_EQ(text_of(scheduler.next()), "read 3@0[0,5). 4@1[0,3)");
  EXPECT_EQ(text_of(scheduler.next()), "answer 3@0");
  EXPECT_EQ(text_of(scheduler.next()), "read 4@1[3,9). 7@2[0,2).");
  EXPECT_EQ(text_of(scheduler.next()), "answer 3@0 4@1 7@2");
  EXPECT_EQ(text_of(scheduler.next()), "answer 3@0 4@1 7@2");
}

// Who answers waits for one chunk at most, however much there is to read.
TEST(Scheduler, ChunksAndTokensTakeTurns) {
  Scheduler scheduler({.sequences = 3, .prefill_tokens = 4});
  scheduler.add(0, of_tokens(2));
  EXPECT_EQ(text_of(scheduler.next()), "read 0@0[0,2).");
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0");
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0");
  scheduler.add(1, of_tokens(11));
  EXPECT_EQ(text_of(scheduler.next()), "read 1@1[0,4)");
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0");
  scheduler.add(2, of_tokens(1));
  EXPECT_EQ(text_of(scheduler.next()), "read 1@1[4,8)");
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0");
  EXPECT_EQ(text_of(scheduler.next()), "read 1@1[8,11). 2@2[0,1).");
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0 1@1 2@2");
}

// As long as nobody answers, nothing stands between the chunks.
TEST(Scheduler, ReadsWithoutPausesWhereNobodyAnswers) {
  Scheduler scheduler({.sequences = 1, .prefill_tokens = 4});
  scheduler.add(0, of_tokens(9));
  for (const char* part : {"read 0@0[0,4)", "read 0@0[4,8)", "read 0@0[8,9).", "answer 0@0"})
    EXPECT_EQ(text_of(scheduler.next()), part);
}

TEST(Scheduler, APlaceIsFreeForTheNextAtOnce) {
  Scheduler scheduler({.sequences = 2, .prefill_tokens = 8});
  for (RequestId request = 0; request < 4; ++request) scheduler.add(request, of_tokens(2));
  EXPECT_EQ(text_of(scheduler.next()), "read 0@0[0,2). 1@1[0,2).");
  EXPECT_EQ(scheduler.waiting(), 2);
  EXPECT_EQ(scheduler.running(), 2);
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0 1@1");
  EXPECT_EQ(scheduler.remove(1), 1);
  EXPECT_EQ(text_of(scheduler.next()), "read 2@1[0,2).");
  EXPECT_EQ(scheduler.remove(0), 0);
  EXPECT_EQ(scheduler.remove(2), 1);
  EXPECT_EQ(text_of(scheduler.next()), "read 3@0[0,2).") << "the smallest number that is free";
}

// Wherever a request is when it is removed, what comes after is as if it had not been there.
TEST(Scheduler, RemovesAtAnyMoment) {
  Scheduler scheduler({.sequences = 2, .prefill_tokens = 4});
  scheduler.add(0, of_tokens(10));
  scheduler.add(1, of_tokens(3));
  scheduler.add(2, of_tokens(2));
  scheduler.add(3, of_tokens(4));
  EXPECT_EQ(scheduler.remove(2), std::nullopt) << "waiting";
  EXPECT_EQ(text_of(scheduler.next()), "read 0@0[0,4)");
  EXPECT_EQ(scheduler.remove(0), 0) << "in the middle of its prompt";
  EXPECT_EQ(text_of(scheduler.next()), "read 1@1[0,3). 3@0[0,1)");
  EXPECT_EQ(text_of(scheduler.next()), "answer 1@1");
  EXPECT_EQ(scheduler.remove(1), 1) << "answering";
  EXPECT_EQ(text_of(scheduler.next()), "read 3@0[1,4).");
}

// The encoder's input goes whole, with the first part.
TEST(Scheduler, AnEncoderReadsItsInputAtOnce) {
  Scheduler scheduler({.sequences = 4, .prefill_tokens = 16, .encoder_tokens = 20});
  scheduler.add(0, {.tokens = 1, .encoder_tokens = 12});
  scheduler.add(1, {.tokens = 18, .encoder_tokens = 8});
  scheduler.add(2, {.tokens = 1, .encoder_tokens = 20});
  scheduler.add(3, {.tokens = 1, .encoder_tokens = 1});
  EXPECT_EQ(text_of(scheduler.next()), "read 0@0[0,1). 1@1[0,15)");
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0");
  EXPECT_EQ(text_of(scheduler.next()), "read 1@1[15,18). 2@2[0,1).");
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0 1@1 2@2");
  EXPECT_EQ(text_of(scheduler.next()), "read 3@3[0,1).");
}

TEST(Scheduler, EntersWhereThereArePages) {
  PlayedPages pages{.free = 10, .needed = {{0, 6}, {1, 5}, {2, 1}, {3, 4}, {4, 1}}};
  Scheduler scheduler({.sequences = 8, .prefill_tokens = 8}, pages.enter());
  scheduler.add(0, of_tokens(1));
  scheduler.add(1, of_tokens(1));  // waits for pages
  scheduler.add(2, of_tokens(1));  // is not let in before it, though there are pages
  EXPECT_EQ(text_of(scheduler.next()), "read 0@0[0,1).");
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0");
  EXPECT_EQ(scheduler.waiting(), 2);
  scheduler.remove(0);
  pages.free += 6;
  EXPECT_EQ(text_of(scheduler.next()), "read 1@0[0,1). 2@1[0,1).");
  scheduler.add(3, of_tokens(1));
  scheduler.add(4, of_tokens(1));
  EXPECT_EQ(text_of(scheduler.next()), "answer 1@0 2@1");
  EXPECT_EQ(text_of(scheduler.next()), "read 3@2[0,1).");
  EXPECT_EQ(pages.free, 0);
}

// The one that came last goes, and comes again before those that came after it.
TEST(Scheduler, WhoIsPreemptedEntersAgainFirst) {
  PlayedPages pages{.free = 2, .needed = {{0, 1}, {1, 1}, {2, 1}}};
  Scheduler scheduler({.sequences = 3, .prefill_tokens = 8}, pages.enter());
  for (RequestId request = 0; request < 3; ++request) scheduler.add(request, of_tokens(2));
  EXPECT_EQ(text_of(scheduler.next()), "read 0@0[0,2). 1@1[0,2).");
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0 1@1");
  EXPECT_EQ(scheduler.latest(), 1);
  EXPECT_EQ(scheduler.preempt_latest(3), 1);
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0");
  EXPECT_EQ(scheduler.waiting(), 2);
  scheduler.remove(0);
  pages.free = 1;
  EXPECT_EQ(text_of(scheduler.next()), "read 1@0[0,3).");
  EXPECT_EQ(scheduler.remove(1), 0);
  pages.free = 1;
  EXPECT_EQ(text_of(scheduler.next()), "read 2@0[0,2).");
}

TEST(Scheduler, WhatIsKnownIsNotRead) {
  PlayedPages pages{.known = {{0, 6}, {1, 0}, {2, 11}}};
  Scheduler scheduler({.sequences = 3, .prefill_tokens = 8}, pages.enter());
  scheduler.add(0, of_tokens(9));
  scheduler.add(1, of_tokens(7));
  scheduler.add(2, of_tokens(12));
  EXPECT_EQ(text_of(scheduler.next()), "read 0@0[6,9). 1@1[0,5)");
  EXPECT_EQ(text_of(scheduler.next()), "answer 0@0");
  EXPECT_EQ(text_of(scheduler.next()), "read 1@1[5,7). 2@2[11,12).");
}

TEST(Scheduler, NamesThoseWhoseTimeHasCome) {
  Scheduler scheduler({.sequences = 1, .prefill_tokens = 8});
  for (const auto& [request, deadline] : {std::pair{0, 2.0}, {1, 1.5}, {2, 1.5}, {3, 9.0}})
    scheduler.add(request, {.tokens = 1, .deadline = deadline});
  scheduler.add(4, of_tokens(1));
  scheduler.next();
  EXPECT_TRUE(scheduler.expired(1.4).empty());
  EXPECT_EQ(scheduler.expired(1.5), (std::vector<RequestId>{1, 2}));
  EXPECT_EQ(scheduler.expired(3), (std::vector<RequestId>{1, 2, 0}));
  scheduler.remove(0);
  scheduler.remove(1);
  EXPECT_EQ(scheduler.expired(3), std::vector<RequestId>{2});
}

// A model that is played: requests come, end and are taken back by chance, and every run is checked
// against what the scheduler promises.
class PlayedModel {
 public:
  explicit PlayedModel(unsigned seed)
      : random_(seed), scheduler_({.sequences = 4, .prefill_tokens = kChunk}, pages_.enter()) {
    pages_.free = kPages;
  }

  // The runs, as text.
  std::string play(int64_t requests) {
    while (told_ < requests || !here_.empty()) {
      if (told_ < requests && chance(3) == 0) arrive();
      if (!here_.empty() && chance(17) == 0) leave(std::next(here_.begin(), chance(here_.size())));
      const ScheduledRun run = scheduler_.next();
      EXPECT_TRUE(run.parts.empty() || run.answering.empty());
      read(run);
      answer(run);
      has_read_ = !run.parts.empty();
      check_places();
      log_ += text_of(run) + "\n";
    }
    return log_;
  }

 private:
  struct Here {
    Demand demand;
    int64_t read = 0;
    int64_t sequence = -1;
    int64_t answers = 0;
  };
  using Place = std::map<RequestId, Here>::iterator;

  int64_t chance(size_t of) { return static_cast<int64_t>(random_() % of); }

  void arrive() {
    const Demand demand = of_tokens(1 + chance(20));
    pages_.needed[told_] = chance(7);
    here_[told_].demand = demand;
    scheduler_.add(told_++, demand);
  }

  void leave(Place place) {
    const std::optional<int64_t> sequence = scheduler_.remove(place->first);
    // One that has entered in the meantime, but was not read yet, has a number too.
    if (place->second.sequence >= 0) {
      EXPECT_EQ(sequence, place->second.sequence);
    }
    if (sequence) pages_.free += pages_.needed[place->first];
    here_.erase(place);
  }

  void read(const ScheduledRun& run) {
    int64_t tokens = 0;
    for (const engine::PromptPart& part : run.parts) {
      Here& one = here_.at(part.request);
      EXPECT_EQ(part.first, one.read);
      if (part.first == 0) {
        EXPECT_GT(part.request, entered_) << "in the order of arrival";
        entered_ = part.request;
        one.sequence = part.sequence;
      }
      EXPECT_EQ(part.sequence, one.sequence);
      one.read += part.tokens;
      EXPECT_EQ(part.is_last, one.read == one.demand.tokens);
      tokens += part.tokens;
    }
    EXPECT_LE(tokens, kChunk);
    for (const auto& [request, one] : here_)
      if (one.answers > 0 && !run.parts.empty()) {
        EXPECT_FALSE(has_read_) << "two chunks, and " << request << " waits";
      }
    for (const engine::PromptPart& part : run.parts)
      if (part.is_last) here_.at(part.request).answers = 1;
  }

  void answer(const ScheduledRun& run) {
    for (const auto& [request, sequence] : run.answering) {
      EXPECT_EQ(sequence, here_.at(request).sequence);
      EXPECT_EQ(here_.at(request).read, here_.at(request).demand.tokens);
      if (++here_.at(request).answers > 1 + chance(12)) leave(here_.find(request));
    }
  }

  void check_places() {
    std::map<int64_t, RequestId> sequences;
    for (const auto& [request, one] : here_)
      if (one.sequence >= 0) {
        EXPECT_TRUE(sequences.emplace(one.sequence, request).second);
      }
    EXPECT_LE(std::ssize(sequences), 4);
    if (here_.empty()) {
      EXPECT_EQ(pages_.free, kPages);
    }
  }

  static constexpr int64_t kPages = 12;
  static constexpr int64_t kChunk = 8;
  std::mt19937 random_;
  PlayedPages pages_;
  Scheduler scheduler_;
  std::map<RequestId, Here> here_;
  RequestId told_ = 0;
  RequestId entered_ = -1;
  bool has_read_ = false;
  std::string log_;
};

TEST(Scheduler, KeepsItsPromisesInAnyOrderOfCalls) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::string first = PlayedModel(seed).play(150);
    EXPECT_EQ(first, PlayedModel(seed).play(150)) << "the same calls give the same runs";
  }
}

}  // namespace
}  // namespace snug::testing
