// Which pages the sequences of one stream of tokens have, in all groups of layers. It is data only:
// what it answers becomes the batch tensors slots, key_bounds and pages of a group.
//
// A sequence's life: enter() with what of its beginning is known, then any number of times grow()
// by some tokens, a run that writes their keys to slots() and reads key_bounds() through table(),
// perhaps shrink() by some of these tokens, and written(); release() at any moment. Only whole
// pages are shared, and only after they are written, so a page that is shared is never written and
// nothing has to be copied.
//
// Everything follows from the order of the calls. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/pages/page_group.h"
#include "engine/pages/page_pool.h"
#include "engine/pages/prefix_index.h"
#include "models/forward/key_pages.h"

namespace snug::engine {

struct PagesShape {
  int64_t page_tokens = 64;
  int64_t sequences = 0;        // that there can be at one time
  int64_t sequence_tokens = 0;  // that one can have
  int64_t chunk_tokens = 0;     // by which one grows at most in a run
  int64_t answer_tokens = 1;    // the same after its prompt has been read
  std::vector<PageGroup> groups;
};

// Positions [begin, end) of a sequence.
struct Positions {
  int64_t begin = 0;
  int64_t end = 0;
};

struct EnteringSequence {
  std::span<const int32_t> prompt;  // after a preemption: with the answer so far
  // The pages that it can need to have so many tokens are promised to it. Fewer than it may come to
  // have: growing beyond them is refused when the others need the pages.
  int64_t promised_tokens = 0;
  AdapterVersion adapter{};
  // False where keys depend on more than the tokens before them: on the input of an encoder.
  bool shares = true;
  // Tokens of the prompt from here on are read in any case, because their logits are needed. -1:
  // the last one alone.
  int64_t first_read = -1;

  // What of the prompt may have been read before, and the token after it.
  std::span<const int32_t> shareable() const {
    if (!shares) return {};
    return first_read < 0 ? prompt : prompt.first(static_cast<size_t>(first_read) + 1);
  }
  // Who shares nothing may not give all of its prompt yet: any of its tokens may come in chunks.
  models::SequenceGrowth growth() const {
    return {shares ? std::ssize(prompt) : promised_tokens, promised_tokens};
  }
};

class SequencePages {
 public:
  explicit SequencePages(PagesShape shape);

  const PagesShape& shape() const { return shape_; }
  int64_t pages_per_sequence() const {
    return models::pages_of(shape_.sequence_tokens, shape_.page_tokens);
  }
  const PagePool& pool(int64_t group) const { return pools_[static_cast<size_t>(group)]; }

  const PrefixIndex& index() const { return index_; }

  // Whether a sequence that grows like this can enter where there is no other.
  bool can_ever_enter(const models::SequenceGrowth& growth) const;

  // Whether a sequence that is here is about to read more of this beginning than is known: one that
  // enters after that reads less. It reads that within its prompt, so nobody waits for it forever.
  bool is_being_read(const EnteringSequence& entering) const;

  // A sequence takes the place `sequence`, which must be empty, and shares the longest beginning of
  // its prompt that is known. Returns how many tokens that are; the others have to be read. Nothing
  // is returned, and nothing done, where some group cannot promise the pages.
  std::optional<int64_t> enter(int64_t sequence, const EnteringSequence& entering);

  // Promises the pages that it can need to have so many tokens, if they are neither used by others
  // nor promised to them. False: nothing is done.
  bool promise(int64_t sequence, int64_t tokens);

  // Room for these tokens, in all groups or in none: false where a group has too few pages that are
  // not used by others or promised to them. Within what was promised it never fails. The tokens
  // before must have been written.
  bool grow(int64_t sequence, std::span<const int32_t> ids);

  // Forgets the last of the tokens that are not written yet, and gives back the pages that they
  // alone have.
  void shrink(int64_t sequence, int64_t tokens);

  // The keys of all tokens are in their pages now. Whole pages can be shared from here on, and what
  // no later token sees is given back.
  void written(int64_t sequence);

  // Forgets a sequence, at any moment: it has ended, or was cancelled or preempted. What it wrote
  // and others may share is kept while there is room.
  void release(int64_t sequence);

  // Forgets all beginnings: the model's weights have changed. Sequences that are there keep their
  // pages, but no other will ever share them; what must not go on with them is released.
  void drop_all();

  bool is_empty(int64_t sequence) const { return !at(sequence).is_here; }
  int64_t length(int64_t sequence) const { return at(sequence).length; }  // of written tokens

  // In which positions the keys lie that a run after grow() reads: from the first page that was not
  // given back to the last token.
  Positions key_bounds(int64_t sequence, int64_t group) const;
  // (pages_per_sequence): the page of each page_tokens positions, -1 where there is none.
  void fill_table(int64_t sequence, int64_t group, std::span<int32_t> row) const;
  // (tokens of the last grow()): the row of the group's pools to which each token's key goes.
  void fill_slots(int64_t sequence, int64_t group, std::span<int32_t> slots) const;

 private:
  // A sequence's pages in one group.
  struct Table {
    std::vector<PageId> pages;  // kNoPage before `first`
    int64_t first = 0;
    int64_t promised = 0;
    int64_t held() const { return std::ssize(pages) - first; }
  };
  struct Sequence {
    bool is_here = false;
    int64_t length = 0;  // of the tokens whose keys are written
    int64_t end = 0;     // of all: those of the last grow() too
    AdapterVersion adapter;
    int64_t prompt_tokens = 0;      // that may come in chunks
    std::vector<int32_t> prompt;    // where it shares
    std::optional<EntryId> entry;   // of its whole pages; nothing: it shares none
    std::vector<int32_t> unshared;  // the tokens after these pages, where it shares
    std::vector<Table> tables;      // (groups)
  };
  const Sequence& at(int64_t sequence) const;
  Sequence& at(int64_t sequence);
  const Table& table_of(int64_t sequence, int64_t group) const;
  models::PageSizes page_sizes() const {
    return {shape_.page_tokens, shape_.chunk_tokens, shape_.answer_tokens};
  }
  int64_t claimed(int64_t group) const;
  int64_t claim_of(int64_t group, int64_t promised, std::span<const PageId> known) const;
  bool has_room(int64_t group, const Table& table, int64_t needed) const;
  void take_page(int64_t group, Table& table);
  void publish_page(Sequence& sequence);
  void give_back(Sequence& sequence);

  PagesShape shape_;
  std::vector<PagePool> pools_;  // (groups)
  PrefixIndex index_;
  std::vector<Sequence> sequences_;
};

}  // namespace snug::engine
