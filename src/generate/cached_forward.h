// The forward pass over sequences that grow: a prefill appends any number of tokens, a decode one
// token to each sequence. Sequence s owns rows [s * capacity, (s + 1) * capacity) of every layer's
// key and value caches, with the capacity of the stream that these keys are of; which of them hold
// tokens is data, so every run is the same program. Where the model has an encoder, a prefill runs
// it on what it reads of a sequence, which comes whole and once, before the sequence's first token.
// One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/token_streams.h"
#include "generate/inference.h"
#include "generate/sampling.h"

namespace snug::generate {

// Tokens that are appended to one sequence.
struct SequencePart {
  int64_t sequence = 0;
  std::span<const int32_t> ids;
  std::span<const int32_t> encoder_ids{};  // what its encoder reads; empty: nothing, or read before
};

// The host's side of a program's batch tensors of one stream. A program that appends nothing to
// an encoder's has its key_bounds alone.
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
  // `inference` must outlive it.
  explicit CachedForward(Inference& inference);

  int64_t sequences() const { return spec_.sequences; }
  int64_t prefill_tokens() const { return spec_.prefill_tokens; }
  int64_t encoder_tokens() const { return spec_.encoder_tokens; }  // of one prefill
  int64_t length(int64_t sequence) const {
    return lengths_.decoder()[static_cast<size_t>(sequence)];
  }
  // Forgets the tokens of every sequence.
  void clear();

  // Appends tokens to different sequences, in rising order of sequence, of prefill_tokens() in
  // all at most. Afterwards logits row s is that of the last token appended to sequence s, or, with
  // all_logits, row t that of the t-th token of all.
  void prefill(std::span<const SequencePart> parts);

  // Appends ids[s] to sequence s, or nothing where it is kIdle. Afterwards logits row s is that of
  // the token appended to sequence s.
  static constexpr int32_t kIdle = -1;
  void decode(std::span<const int32_t> ids);

  // A row of logits (vocab) of the last run, which the program has copied to the host where it
  // looks for no likeliest tokens; valid until the next run.
  std::span<const float> logits(int64_t row) const;
  // Whether the programs look for the likeliest tokens, and those of a row of the last run's
  // logits; valid until the next run.
  bool has_candidates() const { return spec_.candidates > 0; }
  Likeliest likeliest(int64_t row) const;

 private:
  // The host's side of a program's batch tensors, and of its results.
  struct Batch {
    program::ProgramName program{};
    base::PerStream<StreamBatch> streams;
    int32_t* output_rows = nullptr;  // (outputs)
    int64_t outputs = 0;
    const float* logits = nullptr;            // (outputs, vocab); null where there are candidates
    const float* likeliest_logits = nullptr;  // (outputs, candidates)
    const int32_t* likeliest_ids = nullptr;   // (outputs, candidates)
  };
  StreamBatch stream_of(program::ProgramName program, base::TokenStream stream,
                        int64_t tokens) const;
  Batch batch_of(program::ProgramName program, const base::PerStream<int64_t>& tokens) const;
  void reset(const Batch& batch);
  void reset(const StreamBatch& batch) const;
  void append(const Batch& batch, base::TokenStream stream, int64_t row, int64_t sequence,
              std::span<const int32_t> ids);
  void finish_part(const Batch& batch, int64_t sequence, int64_t end) const;
  void show_keys(const Batch& batch, base::TokenStream stream, int64_t sequence) const;
  void run(const Batch& batch);

  Inference& inference_;
  const plan::InferenceSpec& spec_;
  Batch prefill_;
  Batch decode_;
  const Batch* last_ = nullptr;
  base::PerStream<std::vector<int64_t>> lengths_;  // (sequences), of each stream
};

}  // namespace snug::generate
