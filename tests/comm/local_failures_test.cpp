// What becomes of a group when a rank is late or stops, and whether communication goes on next to
// other work.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "base/error.h"
#include "base/seconds_since.h"
#include "checked_sums.h"
#include "comm/last_words.h"
#include "ranks.h"

namespace snug::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Longer than any of these tests takes.
const LocalOptions kPatient{std::chrono::seconds(60), milliseconds(0), 0};

Ticket begin_gather(Communicator& communicator, std::vector<float>& whole) {
  const GatherPart parts[] = {{&whole[communicator.rank()], whole.data(), sizeof(float)}};
  return communicator.begin_all_gather(parts, "weights of layer 3");
}

void gather(Communicator& communicator) {
  std::vector<float> whole(communicator.size());
  communicator.wait(begin_gather(communicator, whole));
}

void expect_words(const std::string& error, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(error.find(word), std::string::npos) << "'" << error << "' lacks '" << word << "'";
}

TEST(LocalFailures, ATimeOutNamesRankCollectiveAndStep) {
  const auto errors = errors_of_ranks(4, {milliseconds(150), milliseconds(0), 0}, [](auto& ranks) {
    ranks.set_step(7);
    gather(ranks);
    if (ranks.rank() == 2) std::this_thread::sleep_for(milliseconds(500));
    gather(ranks);
  });
  for (const int rank : {0, 1, 3})
    expect_words(errors[rank], {"rank 2 did not come within 0.15 s", "all_gather",
                                "weights of layer 3", "step 7"});
  expect_words(errors[2], {"stopped: ", "rank 2 did not come"});
}

TEST(LocalFailures, AnAbortReachesRanksThatWait) {
  const auto begin = Clock::now();
  const auto errors = errors_of_ranks(3, kPatient, [](auto& ranks) {
    if (ranks.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(30));
      ranks.abort("out of memory");
    }
    gather(ranks);
  });
  for (const int rank : {0, 2}) expect_words(errors[rank], {"rank 1 stopped: out of memory"});
  expect_words(errors[1], {"out of memory"});
  EXPECT_LT(base::seconds_since(begin), 10);
}

// The exit codes with which ranks end of which one does something else before the second gather.
std::vector<int> codes_of_ranks(const LocalOptions& options,
                                const std::function<void(Communicator&)>& first_does) {
  std::vector<int> codes(3);
  errors_of_ranks(3, options, [&](auto& ranks) {
    try {
      gather(ranks);
      if (ranks.rank() == 0) first_does(ranks);
      gather(ranks);
    } catch (const base::UserError& error) {
      codes[static_cast<size_t>(ranks.rank())] = error.exit_code();
      EXPECT_EQ(std::string(error.what()).find('\\'), std::string::npos) << error.what();
      throw;
    }
  });
  return codes;
}

// For ranks that wait and for those that are told of it; what a rank was given wrongly stays that.
TEST(LocalFailures, ThatARankHangsIsNoMistakeOfTheUser) {
  const LocalOptions impatient{milliseconds(150), milliseconds(0), 0};
  EXPECT_EQ(
      codes_of_ranks(impatient, [](auto&) { std::this_thread::sleep_for(milliseconds(500)); }),
      (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(codes_of_ranks(kPatient, [](auto& ranks) { ranks.abort("no such file"); }),
            (std::vector<int>{2, 2, 2}));
}

// What each rank ends with, and whether it is the one to say it.
struct Said {
  int exit_code = 0;
  bool says = false;
};
std::vector<Said> said_by_ranks(const LocalOptions& options,
                                const std::function<void(Communicator&)>& does) {
  std::vector<Said> said(4);
  errors_of_ranks(4, options, [&](Communicator& ranks) {
    Ending ending;
    try {
      does(ranks);
      return;
    } catch (const OtherRankError& error) {
      const auto cause = error.was_told() ? Ending::Cause::told : Ending::Cause::missing;
      ending = {error.what(), error.exit_code(), cause};
    } catch (const base::UserError& error) {
      ending = {error.what(), error.exit_code()};
    }
    said[static_cast<size_t>(ranks.rank())] = {ending.exit_code, is_to_say(ranks, ending)};
  });
  return said;
}

TEST(LastWords, WhatAllFindIsSaidByTheFirst) {
  const auto said = said_by_ranks(kPatient, [](auto& ranks) {
    gather(ranks);
    std::this_thread::sleep_for(milliseconds(20 * (4 - ranks.rank())));
    throw base::UserError("the data are broken");
  });
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(said[static_cast<size_t>(rank)].says, rank == 0) << rank;
    EXPECT_EQ(said[static_cast<size_t>(rank)].exit_code, 2);
  }
}

// The others end with its exit code.
TEST(LastWords, WhatOneFindsIsSaidByIt) {
  for (const int code : {1, 2, 3}) {
    const auto said = said_by_ranks(kPatient, [&](auto& ranks) {
      if (ranks.rank() == 2) throw base::UserError("does not fit", {}, code);
      gather(ranks);
    });
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(said[static_cast<size_t>(rank)].says, rank == 2) << rank;
      EXPECT_EQ(said[static_cast<size_t>(rank)].exit_code, code) << rank;
    }
  }
}

TEST(LastWords, DifferentErrorsAreAllSaid) {
  const auto said = said_by_ranks(kPatient, [](auto& ranks) {
    if (ranks.rank() == 0) gather(ranks);
    throw base::UserError(ranks.rank() == 1 ? "no file" : "no memory");
  });
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(said[static_cast<size_t>(rank)].says, rank == 1 || rank == 2) << rank;
}

TEST(LastWords, ThatARankIsMissingIsSaidOnce) {
  const LocalOptions impatient{milliseconds(150), milliseconds(0), 0};
  const auto said = said_by_ranks(impatient, [](auto& ranks) {
    if (ranks.rank() == 3) std::this_thread::sleep_for(milliseconds(400));
    gather(ranks);
  });
  int count = 0;
  for (const Said& one : said) count += one.says ? 1 : 0;
  EXPECT_EQ(count, 1);
}

TEST(LocalFailures, AnExceptionReachesRanksThatWait) {
  const auto errors = errors_of_ranks(3, kPatient, [](auto& ranks) {
    gather(ranks);
    if (ranks.rank() == 0) throw std::runtime_error("a mistake");
    gather(ranks);
  });
  EXPECT_EQ(errors[0], "a mistake");
  for (const int rank : {1, 2}) expect_words(errors[rank], {"rank 0 stopped"});
}

TEST(LocalFailures, ARankThatEndedIsNotWaitedFor) {
  const auto errors = errors_of_ranks(3, kPatient, [](auto& ranks) {
    gather(ranks);
    if (ranks.rank() != 1) gather(ranks);
  });
  EXPECT_EQ(errors[1], "");
  for (const int rank : {0, 2}) expect_words(errors[rank], {"rank 1 has ended already"});
}

TEST(LocalFailures, EverythingAfterAFailureFails) {
  errors_of_ranks(2, kPatient, [](auto& ranks) {
    std::vector<float> whole(2);
    const Ticket done = begin_gather(ranks, whole);
    ranks.wait(done);
    ranks.barrier();
    if (ranks.rank() == 1) ranks.abort("enough");
    EXPECT_ANY_THROW(ranks.barrier());
    EXPECT_ANY_THROW(gather(ranks));
    EXPECT_ANY_THROW(ranks.all_gather_text("x"));
    ranks.wait(done);
    ranks.abort("again");
  });
}

TEST(LocalFailures, WhatIsBegunAndNotWaitedForStillReachesOthers) {
  std::vector<std::vector<float>> wholes(2, std::vector<float>(2));
  const auto errors = errors_of_ranks(2, kPatient, [&](auto& ranks) {
    auto& whole = wholes[ranks.rank()];
    whole[ranks.rank()] = static_cast<float>(ranks.rank() + 1);
    const Ticket ticket = begin_gather(ranks, whole);
    if (ranks.rank() == 1) ranks.wait(ticket);
  });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
  EXPECT_EQ(wholes[0], (std::vector<float>{1, 2}));
  EXPECT_EQ(wholes[1], (std::vector<float>{1, 2}));
}

// What the caller does meanwhile takes as long as the link: both together take hardly more than
// one.
TEST(LocalOverlap, CommunicationGoesOnNextToOtherWork) {
  const auto errors =
      errors_of_ranks(2, {std::chrono::seconds(60), milliseconds(200), 0}, [](auto& ranks) {
        std::vector<float> whole(2);
        const auto begin = Clock::now();
        const Ticket ticket = begin_gather(ranks, whole);
        EXPECT_LT(base::seconds_since(begin), 0.1);
        std::this_thread::sleep_for(milliseconds(200));
        ranks.wait(ticket);
        EXPECT_GE(base::seconds_since(begin), 0.2);
        EXPECT_LT(base::seconds_since(begin), 0.35);
      });
  EXPECT_EQ(errors, (std::vector<std::string>{"", ""}));
}

TEST(LocalOverlap, ALinkHasARate) {
  errors_of_ranks(2, {std::chrono::seconds(60), milliseconds(0), 1e6}, [](auto& ranks) {
    std::vector<float> whole(2 * 12500);
    const GatherPart parts[] = {{&whole[12500 * ranks.rank()], whole.data(), 50000}};
    const auto begin = Clock::now();
    const Ticket first = ranks.begin_all_gather(parts, "first");
    const Ticket second = ranks.begin_all_gather(parts, "second");
    ranks.wait(first);
    EXPECT_GE(base::seconds_since(begin), 0.05);
    ranks.wait(second);
    EXPECT_GE(base::seconds_since(begin), 0.1);
  });
}

TEST(LocalSums, TheSameBitsEveryTime) {
  std::vector<Bytes> results(2);
  for (Bytes& result : results)
    errors_of_ranks(4, {}, [&](auto& ranks) {
      Bytes values = values_of(ranks.rank(), 1, 30011, base::DType::f32);
      auto scratch = scratch_for(ranks, 30011);
      const SumPart parts[] = {{values.data(), 30011, base::DType::f32, base::DType::bf16}};
      ranks.wait(ranks.begin_all_reduce(parts, scratch, "sums"));
      const auto texts =
          ranks.all_gather_text({reinterpret_cast<const char*>(values.data()), values.size()});
      for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
      if (ranks.rank() == 0) result = values;
    });
  EXPECT_EQ(results[0], results[1]);
}

TEST(Scratch, HasRoomForAPieceToSendAndOneToReceive) {
  EXPECT_EQ(scratch_bytes(1, 1 << 20, base::DType::f32), 0);
  EXPECT_EQ(scratch_bytes(4, 0, base::DType::f32), 0);
  EXPECT_EQ(scratch_bytes(3, 8, base::DType::f32), 2 * 4 * 24);
  EXPECT_EQ(scratch_bytes(3, 9, base::DType::bf16), 2 * 64);
}

}  // namespace
}  // namespace snug::comm
