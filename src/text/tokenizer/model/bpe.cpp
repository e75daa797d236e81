#include "text/tokenizer/model/bpe.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

constexpr std::string_view kMarker = "\xE2\x96\x81";  // U+2581, which stands for a space
constexpr char32_t kFirstCharacters = 0x800;

// The end of the span that begins at `begin`: the next place where the marker follows another
// character.
size_t marked_end(std::string_view word, size_t begin) {
  size_t at = begin;
  while (word.substr(at).starts_with(kMarker)) at += kMarker.size();
  return std::min(word.find(kMarker, at), word.size());
}

constexpr size_t kMarkerClass = 128;
constexpr size_t kOtherClass = 129;

// The class of the character that begins at `at`; and of the character that ends there.
size_t class_at(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return byte;
  return text.substr(at).starts_with(kMarker) ? kMarkerClass : kOtherClass;
}

size_t class_before(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at - 1]);
  if (byte < 0x80) return byte;
  return text.substr(0, at).ends_with(kMarker) ? kMarkerClass : kOtherClass;
}

// Whether a candidate comes later in the queue: it has a later merge, or the same merge further
// right.
struct IsLater {
  template <typename Candidate>
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  }
};

}  // namespace

Bpe::Bpe(const JsonNode& model, Vocabulary vocabulary, const std::vector<MergeRule>& merges)
    : vocabulary_(std::move(vocabulary)) {
  model.only_keys({"type", "dropout", "unk_token", "continuing_subword_prefix",
                   "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab",
                   "merges"});
  prefix_ = model.string_or("continuing_subword_prefix", "");
  suffix_ = model.string_or("end_of_word_suffix", "");
  fuse_unknown_ = model.boolean_or("fuse_unk", false);
  ignore_merges_ = model.boolean_or("ignore_merges", false);
  // A dropout of 0, as integer or float, has no effect.
  if (model.has("dropout") && model.value().at("dropout") != 0)
    model.fail("merge dropout is not supported; set \"dropout\" to null");
  if (model.has("unk_token")) {
    unknown_ = vocabulary_.find(model.string("unk_token"));
    if (unknown_ < 0)
      model.fail("the unk_token '" + model.string("unk_token") + "' is not in the vocabulary");
  }
  if (model.boolean_or("byte_fallback", false)) {
    byte_ids_.emplace();
    for (size_t byte = 0; byte < 256; ++byte)
      (*byte_ids_)[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
  }
  index_characters();
  read_merges(model, merges);
}

// Whether a token replaces characters that have no token of their own.
bool Bpe::is_stand_in(int32_t id) const {
  return id == unknown_ || (byte_ids_ && std::ranges::find(*byte_ids_, id) != byte_ids_->end());
}

void Bpe::read_merges(const JsonNode& model, const std::vector<MergeRule>& merges) {
  merges_.reserve(merges.size());
  splits_at_marker_ = prefix_.empty() && suffix_.empty() && vocabulary_.find(kMarker) >= 0;
  bool merges_stand_ins = false;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    std::string result = left;
    if (right.size() >= prefix_.size()) result += std::string_view(right).substr(prefix_.size());
    const int32_t left_id = vocabulary_.find(left);
    const int32_t right_id = vocabulary_.find(right);
    const int32_t result_id = vocabulary_.find(result);
    if (left_id < 0 || right_id < 0 || result_id < 0)
      model.fail(fmt::format("merge {} joins '{}' and '{}', but '{}' is not in the vocabulary",
                             rank, left, right,
                             left_id < 0    ? left
                             : right_id < 0 ? right
                                            : result));
    merges_.set(left_id, right_id, {static_cast<int32_t>(rank), result_id});
    merges_stand_ins |= is_stand_in(left_id) || is_stand_in(right_id);
    if (!left.empty() && !right.empty())
      joins_[class_before(left, left.size())][class_at(right, 0)] = true;
    if (splits_at_marker_ && marked_end(result, 0) < result.size()) splits_at_marker_ = false;
  }
  close_unseen_joins(merges_stand_ins);
}

void Bpe::index_characters() {
  first_characters_.resize(kFirstCharacters);
  for (char32_t value = 0; value < kFirstCharacters; ++value) {
    std::string character;
    append_code_point(character, value);
    first_characters_[value] = vocabulary_.find(character);
  }
}

// A class counts as joined to all others if merges may see other tokens than its characters: where
// tokens have a prefix or a suffix; where an ASCII character has no token, so that it becomes bytes
// or the unknown token, or is dropped; and for other characters, where they may be dropped, or a
// merge involves bytes or the unknown token.
void Bpe::close_unseen_joins(bool merges_stand_ins) {
  const bool has_all_bytes = byte_ids_ && std::ranges::find(*byte_ids_, -1) == byte_ids_->end();
  const bool is_decorated = !prefix_.empty() || !suffix_.empty();
  for (size_t a = 0; a < kClasses; ++a) {
    bool is_seen = !merges_stand_ins && (has_all_bytes || unknown_ >= 0);
    if (a < kMarkerClass) is_seen = first_characters_[a] >= 0;
    if (a == kMarkerClass) is_seen = vocabulary_.find(kMarker) >= 0;
    if (is_seen && !is_decorated) continue;
    joins_[a].fill(true);
    for (auto& row : joins_) row[a] = true;
  }
  // Adjacent unknown tokens may become one.
  joins_[kOtherClass][kOtherClass] = true;
}

// Whether `at` lies between two characters that no merge joins. Requires at > 0.
bool Bpe::is_span_begin(std::string_view word, size_t at) const {
  const bool is_inside = (static_cast<unsigned char>(word[at]) & 0xC0U) == 0x80U;
  return !is_inside && !joins_[class_before(word, at)][class_at(word, at)];
}

size_t Bpe::span_end(std::string_view word, size_t begin) const {
  if (splits_at_marker_) return marked_end(word, begin);
  size_t at = begin + 1;
  while (at < word.size() && !is_span_begin(word, at)) ++at;
  return at;
}

int32_t Bpe::find_character(std::string_view character) const {
  const CodePoint point = code_point_at(character, 0);
  if (point.value < kFirstCharacters && point.size == character.size())
    return first_characters_[point.value];
  return vocabulary_.find(character);
}

bool Bpe::push_bytes(std::string_view text, std::vector<Symbol>& symbols) const {
  if (!byte_ids_) return false;
  for (const char byte : text)
    if ((*byte_ids_)[static_cast<unsigned char>(byte)] < 0) return false;
  for (const char byte : text)
    symbols.push_back({(*byte_ids_)[static_cast<unsigned char>(byte)], 0, 0, false});
  return true;
}

void Bpe::push_characters(std::string_view word, std::vector<Symbol>& symbols) const {
  bool owes_unknown = false;
  const auto pay = [&] {
    if (owes_unknown) symbols.push_back({unknown_, 0, 0, false});
    owes_unknown = false;
  };
  std::string decorated;
  for (size_t i = 0; i < word.size();) {
    const size_t size = sequence_length(static_cast<unsigned char>(word[i]));
    std::string_view character = word.substr(i, size);
    const bool takes_prefix = i > 0 && !prefix_.empty();
    const bool takes_suffix = i + size == word.size() && !suffix_.empty();
    if (takes_prefix || takes_suffix) {
      decorated = (takes_prefix ? prefix_ : "") + std::string(character);
      if (takes_suffix) decorated += suffix_;
      character = decorated;
    }
    i += size;
    const int32_t id = find_character(character);
    if (id >= 0) {
      pay();
      symbols.push_back({id, 0, 0, false});
    } else if (!push_bytes(character, symbols) && unknown_ >= 0) {
      if (!fuse_unknown_) pay();
      owes_unknown = true;
    }
  }
  pay();
}

void Bpe::push_candidate(int32_t position, Scratch& scratch) const {
  if (position < 0) return;
  const Symbol& left = scratch.symbols[position];
  if (left.next < 0) return;
  const Merge merge = merges_.find(left.id, scratch.symbols[left.next].id);
  if (merge.rank < 0) return;
  scratch.heap.push_back({merge.rank, position, merge.result});
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), IsLater{});
}

void Bpe::merge_symbols(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  const auto count = static_cast<int32_t>(symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols[i].previous = i - 1;
    symbols[i].next = i + 1 < count ? i + 1 : -1;
  }
  scratch.heap.clear();
  for (int32_t i = 0; i < count; ++i) push_candidate(i, scratch);
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), IsLater{});
    const Candidate best = scratch.heap.back();
    scratch.heap.pop_back();
    Symbol& left = symbols[best.position];
    if (left.merged_away || left.next < 0) continue;
    Symbol& right = symbols[left.next];
    // A neighbour may have been merged since, so the pair must still give this token.
    if (merges_.find(left.id, right.id).result != best.result) continue;
    left.id = best.result;
    left.next = right.next;
    right.merged_away = true;
    if (right.next >= 0) symbols[right.next].previous = best.position;
    push_candidate(left.previous, scratch);
    push_candidate(best.position, scratch);
  }
}

void Bpe::encode_span(std::string_view span, std::vector<int32_t>& ids) const {
  if (cache_.look_up(span, ids)) return;
  require_short(span);
  thread_local Scratch scratch;
  // A longer word frees its memory afterwards, and waits for its turn.
  constexpr size_t kKeptSymbols = 4096;
  static std::mutex turn;
  std::unique_lock guard(turn, std::defer_lock);
  if (span.size() > kKeptSymbols) guard.lock();
  const size_t begin = ids.size();
  scratch.symbols.clear();
  push_characters(span, scratch.symbols);
  merge_symbols(scratch);
  for (const Symbol& symbol : scratch.symbols)
    if (!symbol.merged_away) ids.push_back(symbol.id);
  cache_.store(span, ids.data() + begin, ids.size() - begin);
  if (scratch.symbols.capacity() > kKeptSymbols) scratch = Scratch{};
}

size_t Bpe::last_span(std::string_view word) const {
  if (ignore_merges_) return 0;
  for (size_t at = word.size(); at-- > 1;) {
    if (!splits_at_marker_
            ? is_span_begin(word, at)
            : class_at(word, at) == kMarkerClass && class_before(word, at) != kMarkerClass)
      return at;
  }
  return 0;
}

void Bpe::encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.empty()) return;
  if (ignore_merges_) {
    const int32_t whole = vocabulary_.find(word);
    if (whole >= 0) return ids.push_back(whole);
  }
  if (!splits_at_marker_ && word.size() <= WordCache::kWordBytes) return encode_span(word, ids);
  for (size_t begin = 0; begin < word.size();) {
    const size_t end = span_end(word, begin);
    encode_span(word.substr(begin, end - begin), ids);
    begin = end;
  }
}

int64_t Bpe::host_bytes() const {
  return vocabulary_.host_bytes() + merges_.host_bytes() + WordCache::host_bytes() +
         static_cast<int64_t>(first_characters_.capacity() * sizeof(int32_t));
}

}  // namespace snug::text
