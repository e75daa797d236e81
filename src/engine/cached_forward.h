// The forward pass over sequences that grow: a prefill appends any number of tokens, a decode one
// token to each of some sequences. Sequence s owns rows [s * capacity, (s + 1) * capacity) of every
// layer's key and value caches, where the capacity is that of the stream that the keys come from.
// Which of these rows hold tokens is data, so every run executes the same program. Where the model
// has an encoder, a prefill runs it on a sequence's encoder input, which is given whole and once,
// before the sequence's first token. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/token_streams.h"
#include "engine/sampling.h"
#include "plan/job/job.h"
#include "runtime/execution/executor.h"

namespace snug::engine {

// Tokens that are appended to one sequence.
struct SequencePart {
  int64_t sequence = 0;
  std::span<const int32_t> ids;
  std::span<const int32_t> encoder_ids{};  // input of its encoder; empty: none, or already encoded
};

// The host's side of a program's batch tensors for one stream. For a program that appends nothing
// to the encoder's stream, only that stream's key_bounds exists.
struct StreamBatch {
  int64_t tokens = 0;
  int32_t* ids = nullptr;           // (tokens)
  int32_t* positions = nullptr;     // (tokens)
  int32_t* slots = nullptr;         // (tokens)
  int32_t* query_bounds = nullptr;  // (sequences, 2)
  int32_t* key_bounds = nullptr;    // (sequences, 2)
};

class CachedForward {
 public:
  // The executor's job must contain the programs of `shape`: a job of inference, or of training
  // with generation. The executor must outlive the object.
  CachedForward(runtime::Executor& executor, const plan::InferenceShape& shape);
  CachedForward(const CachedForward&) = delete;
  CachedForward& operator=(const CachedForward&) = delete;

  const plan::InferenceShape& shape() const { return shape_; }
  int64_t sequences() const { return shape_.sequences; }
  int64_t prefill_tokens() const { return shape_.prefill_tokens; }
  int64_t encoder_tokens() const { return shape_.encoder_tokens; }  // capacity of one prefill
  int64_t length(int64_t sequence) const {
    return lengths_.decoder()[static_cast<size_t>(sequence)];
  }
  // Forgets the tokens of one sequence, so that another can take its place; or those of all
  // sequences.
  void release(int64_t sequence);
  void release_all();

  // Appends tokens, at least one each, to different sequences, in ascending order of sequence and
  // at most prefill_tokens() in total. Afterwards the logits of sequence s are those of the last
  // token appended to it; with all_logits, row t holds the logits of the t-th appended token.
  // Throws UserError, with nothing done, where a sequence would grow beyond its capacity or the
  // parts hold too many tokens. If the job has run another stage since (Executor::stages_begun),
  // all sequences must have been released.
  void prefill(std::span<const SequencePart> parts);

  // Appends ids[s] to each sequence s whose id is not kIdle, with the smallest program that holds
  // those sequences. Afterwards the logits of sequence s are those of the token appended to it.
  // Throws UserError, with nothing done, where a sequence would grow beyond its capacity.
  static constexpr int32_t kIdle = -1;
  void decode(std::span<const int32_t> ids);

  // The logits (vocab) of a sequence in the last run, or of a token with all_logits. The program
  // copies them to the host only if it does not select the likeliest tokens. Valid until the next
  // run.
  std::span<const float> logits(int64_t sequence) const;
  // Whether the programs select the likeliest tokens; and the tokens selected for a sequence in the
  // last run, valid until the next run.
  bool has_candidates() const { return shape_.candidates > 0; }
  Likeliest likeliest(int64_t sequence) const;

 private:
  // The host's side of a program's batch tensors and of its results.
  struct Batch {
    program::ProgramKey program = program::ProgramName::prefill;
    base::PerStream<StreamBatch> streams;
    int64_t segments = 0;            // the number of sequences that it holds
    int32_t* output_rows = nullptr;  // (outputs)
    int64_t outputs = 0;
    int64_t vocabulary = 0;
    const float* logits = nullptr;            // (outputs, vocab); null with candidates
    const float* likeliest_logits = nullptr;  // (outputs, candidates)
    const int32_t* likeliest_ids = nullptr;   // (outputs, candidates)
  };
  // A sequence in a batch, with the segment that it has there.
  struct Place {
    int64_t sequence = 0;
    int64_t segment = 0;
  };
  StreamBatch stream_of(const program::ProgramKey& program, base::TokenStream stream,
                        int64_t tokens) const;
  Batch batch_of(const program::ProgramKey& program, const base::PerStream<int64_t>& tokens) const;
  const Batch& smallest_for(int64_t sequences) const;
  void check_room(base::TokenStream stream, int64_t sequence, int64_t tokens) const;
  void check_parts(std::span<const SequencePart> parts) const;
  void reset(const Batch& batch);
  void append(const Batch& batch, base::TokenStream stream, int64_t row, const Place& place,
              std::span<const int32_t> ids);
  void finish_part(const Batch& batch, const Place& place, int64_t end);
  void show_keys(const Batch& batch, base::TokenStream stream, const Place& place) const;
  void run(const Batch& batch);
  void check_caches() const;
  size_t row_of(int64_t sequence) const;

  runtime::Executor& executor_;
  const plan::InferenceShape shape_;
  Batch prefill_;
  std::vector<Batch> decodes_;  // by number of sequences, ascending
  const Batch* last_ = nullptr;
  int64_t stage_ = 0;          // Executor::stages_begun() when the sequences were written
  std::vector<int64_t> rows_;  // (sequences): the row of each sequence in the last run's logits
  base::PerStream<std::vector<int64_t>> lengths_;  // (sequences) for each stream
};

}  // namespace snug::engine
