// The forward pass over sequences that grow: a prefill appends any number of tokens, a decode one
// token to each of some sequences, or few that were guessed, which may be taken back. Their keys
// and values lie in pages of each group's pools (models/forward/key_groups.h). Which pages a
// sequence has, and which rows of them hold tokens, is data, so every run executes one of a few
// programs: the smallest that holds what it appends. A window gives back the pages that no later
// token sees, so that its pools hold sequences that are longer than these pools. Where the model
// has an encoder, a prefill runs it on a sequence's encoder input, which is given whole and once,
// before the sequence's first token. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/token_streams.h"
#include "engine/forward_batch.h"
#include "engine/pages/sequence_pages.h"
#include "engine/sampling.h"
#include "plan/job/job.h"
#include "runtime/execution/executor.h"

namespace snug::engine {

// Tokens that are appended to one sequence.
struct SequencePart {
  int64_t sequence = 0;
  std::span<const int32_t> ids;
  std::span<const int32_t> encoder_ids{};  // input of its encoder; empty: none, or already encoded
  AdapterVersion adapter{};                // of a sequence that enters with these tokens
};

// A run of a program, for so many tokens.
struct Turn {
  program::ProgramName program = program::ProgramName::decode;  // or prefill
  int64_t tokens = 0;
};
// Where ranks exchange parts of weights within their programs, all must run the same ones. Given
// what this rank would run next (nothing: it is done), tells what all run. A rank that would have
// run another program runs this one without sequences, and asks again. Nothing: all are done.
using AgreeOnTurn = std::function<std::optional<Turn>(const std::optional<Turn>&)>;

class CachedForward {
 public:
  // The executor's job must contain the programs of `shape`: a job of inference, or of training
  // with generation. The executor must outlive the object. `agree`: empty where no other rank need
  // run the same; models with an encoder cannot have it.
  CachedForward(runtime::Executor& executor, const plan::InferenceShape& shape,
                AgreeOnTurn agree = {});
  CachedForward(const CachedForward&) = delete;
  CachedForward& operator=(const CachedForward&) = delete;

  const plan::InferenceShape& shape() const { return shape_; }
  int64_t sequences() const { return shape_.sequences; }
  int64_t prefill_tokens() const { return shape_.prefill_tokens; }
  int64_t encoder_tokens() const { return shape_.encoder_tokens; }  // capacity of one prefill
  int64_t length(int64_t sequence) const {
    return pages(base::TokenStream::decoder).length(sequence);
  }
  // A sequence takes an empty place, and with it what its beginning shares with others. Returns how
  // many tokens these are: the others have to be appended. Returns nothing, with nothing done,
  // where the pages cannot be promised that so many tokens may need, or that many of its encoder's
  // input (nothing: the capacity). A sequence that never entered enters with its first tokens: it
  // shares nothing, and may grow to the capacity.
  std::optional<int64_t> enter(int64_t sequence, const EnteringSequence& entering,
                               std::optional<int64_t> encoder_tokens = {});
  // Whether it could where there is no other.
  bool can_ever_enter(const models::SequenceGrowth& growth, int64_t encoder_tokens) const;
  // Lets a sequence grow to so many tokens. False, with nothing done, where the pages cannot be
  // promised that it may need.
  bool promise(int64_t sequence, int64_t tokens);
  // Whether it would share more if it waited until another has been read.
  bool is_being_read(const EnteringSequence& entering) const {
    return pages(base::TokenStream::decoder).is_being_read(as_can_share(entering));
  }
  // Nothing that is cached now is shared with sequences that enter later: the weights are others.
  void forget_beginnings();
  // Forgets the tokens of one sequence, so that another can take its place; or those of all
  // sequences.
  void release(int64_t sequence);
  void release_all();
  // Pages that sequences have now, in all groups together; and how many each group has in all.
  int64_t used_pages() const;
  std::vector<int64_t> pages_of_groups() const;

  // Appends tokens, at least one each, to different sequences, in ascending order of sequence and
  // at most prefill_tokens() in total, with the smallest program that holds them; the encoder runs
  // in the largest one alone. Afterwards the logits of sequence s are those of the last
  // token appended to it; with all_logits, row t holds the logits of the t-th appended token.
  // Throws UserError, with nothing done, where a sequence would grow beyond what was promised to
  // it, there are no pages for it, or the parts hold too many tokens. If the job has run another
  // stage since (Executor::stages_begun), all sequences must have been released.
  void prefill(std::span<const SequencePart> parts);

  // Appends ids[s] to each sequence s whose id is not kIdle, with the smallest program that holds
  // those sequences. Afterwards the logits of sequence s are those of the token appended to it.
  // Throws UserError, with nothing done, where a sequence would grow beyond what was promised to
  // it.
  static constexpr int32_t kIdle = -1;
  void decode(std::span<const int32_t> ids);
  // The same for some sequences, in ascending order, each with at most so many tokens after its
  // first as are guessed for a step (InferenceShape::guessed_tokens). Each token has its logits.
  // Where a sequence had several, keep() must follow before anything else is done with it.
  void decode(std::span<const SequencePart> parts);
  // Runs what other ranks run, without sequences, until all are done. All of them call it.
  void await_others();
  // Of the tokens that the last run appended to a sequence these stay, at least one, and the others
  // are forgotten.
  void keep(int64_t sequence, int64_t tokens);
  // To how many tokens a sequence may grow.
  int64_t promised(int64_t sequence) const { return promised_[static_cast<size_t>(sequence)]; }

  // The logits (vocab) of a sequence in the last run, or of a token with all_logits; where decode
  // appended several tokens to it, those of the token `number`. The program copies them to the host
  // only if it does not select the likeliest tokens. Valid until the next run.
  std::span<const float> logits(int64_t sequence, int64_t number = 0) const;
  // Whether the programs select the likeliest tokens; and the tokens selected for a sequence in the
  // last run, valid until the next run.
  bool has_candidates() const { return shape_.candidates > 0; }
  Likeliest likeliest(int64_t sequence, int64_t number = 0) const;

 private:
  // A sequence in a batch, with the segment that it has there.
  struct Place {
    int64_t sequence = 0;
    int64_t segment = 0;
    int64_t unseen = 0;  // of the sequence's last tokens, which come after those of the segment
  };
  // Rows [begin, end) of a batch.
  struct Rows {
    int64_t begin = 0;
    int64_t end = 0;
  };
  // No beginning is shared where keys depend on the input of an encoder, nor where layers keep a
  // state, which is that after the last token alone.
  EnteringSequence as_can_share(EnteringSequence entering) const {
    const bool has_states = batches_.prefills.back().state_slots != nullptr;
    if (shape_.capacity.has_encoder() || has_states) entering.shares = false;
    return entering;
  }
  const ForwardBatch& prefill_for(int64_t tokens, int64_t encoder_tokens) const;
  const ForwardBatch& decode_for(int64_t rows) const;
  void check_room(base::TokenStream stream, int64_t sequence, int64_t tokens) const;
  void check_parts(std::span<const SequencePart> parts) const;
  void enter_all(std::span<const SequencePart> parts);
  SequencePages& pages(base::TokenStream stream) { return pages_[static_cast<size_t>(stream)]; }
  const SequencePages& pages(base::TokenStream stream) const {
    return pages_[static_cast<size_t>(stream)];
  }
  Rows append(const ForwardBatch& batch, base::TokenStream stream, int64_t row, int64_t sequence,
              std::span<const int32_t> ids);
  static void set_queries(const StreamBatch& to, int64_t segment, const Rows& rows);
  void finish_part(const ForwardBatch& batch, const Place& place, const Rows& rows);
  void show_keys(const ForwardBatch& batch, base::TokenStream stream, const Place& place) const;
  void begin(const ForwardBatch& batch);
  void run(const ForwardBatch& batch);
  int64_t tokens_of_turn(const Turn& own);
  void run_empty(const Turn& turn);
  void begin_stage();
  bool is_undecided(int64_t sequence) const {
    return undecided_[static_cast<size_t>(sequence)] > 0;
  }
  size_t row_of(int64_t sequence, int64_t number) const;

  runtime::Executor& executor_;
  const plan::InferenceShape shape_;
  const AgreeOnTurn agree_;
  const ForwardBatches batches_;
  const ForwardBatch* last_ = nullptr;
  int64_t stage_ = 0;                 // Executor::stages_begun() when the sequences were written
  std::vector<int64_t> rows_;         // (sequences): the first of each in the last run's logits
  std::vector<int64_t> undecided_;    // (sequences): tokens that wait for keep(); 0: none
  std::vector<int64_t> promised_;     // (sequences): the tokens to which each may grow
  std::vector<int64_t> slots_;        // (sequences): the slot of each one's adapter
  std::vector<SequencePages> pages_;  // of each stream
};

}  // namespace snug::engine
