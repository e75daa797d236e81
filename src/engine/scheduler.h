// Decides who may enter and what runs next, from the order of the calls alone: it has no clock (the
// time is told to it), no executor and no tokens. Not thread-safe. Its rules:
//
// 1. Requests wait in the order of their arrival and enter in that order; none overtakes another,
//    so none waits forever. The first of them enters when a sequence number is free (it gets the
//    smallest) and whoever has the pages lets it in (Enter).
// 2. Prompts are read in the order of arrival. They fill a chunk one after the other, and one that
//    does not fit is continued in the next chunk. An encoder reads its whole input with the first
//    part of its decoder's; where that does not fit any more, the chunk ends before it.
// 3. While some are read and others answer, the two take turns: one chunk, then one token for
//    each that answers. So those who answer wait for one chunk at most, however long a prompt is.
// 4. The place of one that leaves is free for the next one at once.
// 5. Who is preempted, because pages run short, is always the one inside that arrived last. So the
//    order of arrival stays that of entering, and the first of all always goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/request.h"

namespace snug::engine {

// What there is to share out.
struct SchedulerRoom {
  int64_t sequences = 1;
  int64_t prefill_tokens = 1;  // of one chunk
  int64_t encoder_tokens = 0;  // of one chunk, for encoders
};

// What the scheduler knows of a request.
struct Demand {
  int64_t tokens = 1;          // that are read before the first new token
  int64_t encoder_tokens = 0;  // that its encoder reads, at once
  std::optional<Seconds> deadline{};
};

// A part of a prompt: `tokens` from `first` on.
struct PromptPart {
  RequestId request = 0;
  int64_t sequence = 0;
  int64_t first = 0;
  int64_t tokens = 0;
  bool is_first = false;  // the encoder's input goes with it
  bool is_last = false;
};

// The next run: parts of prompts, or a token more for some requests, in the order of their arrival.
// Nothing to do where both are empty.
struct ScheduledRun {
  struct Answering {
    RequestId request = 0;
    int64_t sequence = 0;
  };
  std::vector<PromptPart> parts{};
  std::vector<Answering> answering{};
};

// Gives a request the place `sequence`, and says how many of its tokens are known there already,
// which are not read: fewer than it has. Nothing, with nothing done, where the pages that it may
// come to need are not free, or where it had better wait for another that is being read. One that
// is alone must get in, or it waits forever.
using Enter = std::function<std::optional<int64_t>(RequestId request, int64_t sequence)>;

class Scheduler {
 public:
  // `enter`: empty where a sequence number is all that a request needs.
  explicit Scheduler(const SchedulerRoom& room, Enter enter = {});

  // `request` is above all those that were added before, and its encoder's input fits in a chunk.
  void add(RequestId request, Demand demand);

  // Lets requests enter, and says what to run. It is taken to be run: whoever had the last part of
  // a prompt answers from then on, until it is removed.
  ScheduledRun next();

  // Removes a request at any moment, waiting or inside. Returns the place that it had, which the
  // caller empties before next().
  std::optional<int64_t> remove(RequestId request);

  // The request inside that arrived last. Requires one.
  RequestId latest() const;
  // Sends that one back to those that wait, before all of them. When it enters again it reads so
  // many tokens. Returns the place that it had, which the caller empties before next().
  int64_t preempt_latest(int64_t tokens);

  // The requests whose deadlines have come, the earliest first.
  std::vector<RequestId> expired(Seconds now) const;

  int64_t waiting() const { return std::ssize(waiting_); }
  int64_t running() const { return std::ssize(inside_); }

 private:
  struct Inside {
    Demand demand;
    int64_t sequence = 0;
    int64_t known = 0;  // tokens of its prompt that were not read
    int64_t read = 0;   // up to this one, the known ones included

    bool is_reading() const { return read < demand.tokens; }
  };
  void let_enter();
  ScheduledRun next_chunk();
  ScheduledRun next_tokens() const;

  const SchedulerRoom room_;
  const Enter enter_;
  std::map<RequestId, Demand> waiting_;
  std::map<RequestId, Inside> inside_;
  std::set<int64_t> free_sequences_;
  std::set<std::pair<Seconds, RequestId>> deadlines_;
  bool has_just_read_ = false;
};

}  // namespace snug::engine
