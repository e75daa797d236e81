#include "text/tokenizer/model/unigram.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

// The unknown token's score is this much below the lowest score of a piece, as in SentencePiece.
constexpr double kUnknownPenalty = 10.0;

}  // namespace

Unigram::Unigram(const JsonNode& model, Vocabulary vocabulary, std::vector<double> scores)
    : vocabulary_(std::move(vocabulary)), scores_(std::move(scores)), trie_(vocabulary_) {
  model.only_keys({"type", "unk_id", "vocab", "byte_fallback"});
  if (model.has("unk_id")) {
    const int64_t id = model.integer("unk_id");
    if (id < 0 || id >= vocabulary_.count())
      model.fail(fmt::format("the unk_id {} is not in the vocabulary", id));
    unknown_ = static_cast<int32_t>(id);
  }
  double lowest = std::numeric_limits<double>::infinity();
  for (const double score : scores_) lowest = std::min(lowest, score);
  unknown_score_ = lowest - kUnknownPenalty;
  if (!model.boolean_or("byte_fallback", false)) return;
  byte_ids_.emplace();
  for (size_t byte = 0; byte < 256; ++byte)
    (*byte_ids_)[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
}

void Unigram::find_best(std::string_view word, std::vector<Place>& places) const {
  places.assign(word.size() + 1, {});
  for (size_t begin = 0; begin < word.size();) {
    const double score_here = places[begin].score;
    const size_t character = sequence_length(static_cast<unsigned char>(word[begin]));
    const auto offer = [&](size_t size, int32_t id, double score) {
      Place& place = places[begin + size];
      if (place.id < 0 || score > place.score) place = {score, id, static_cast<uint32_t>(begin)};
    };
    bool has_character = false;
    trie_.visit_prefixes(word.substr(begin), [&](size_t size, int32_t id) {
      offer(size, id, scores_[id] + score_here);
      has_character |= size == character;
    });
    if (!has_character) {
      if (unknown_ < 0)
        base::throw_user_error("the tokenizer has no piece for '{}' and no unknown token",
                               word.substr(begin, character));
      offer(character, unknown_, unknown_score_ + score_here);
    }
    begin += character;
  }
}

void Unigram::append_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  // Characters that are unknown one by one may form a piece together.
  const int32_t known = vocabulary_.find(text);
  if (known >= 0) return ids.push_back(known);
  const auto id_of = [&](char byte) { return (*byte_ids_)[static_cast<unsigned char>(byte)]; };
  const bool has_bytes =
      byte_ids_ && std::all_of(text.begin(), text.end(), [&](char c) { return id_of(c) >= 0; });
  if (!has_bytes) return ids.push_back(unknown_);
  for (const char byte : text) ids.push_back(id_of(byte));
}

void Unigram::encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.empty() || cache_.look_up(word, ids)) return;
  require_short(word);
  struct Scratch {
    std::vector<Place> places;
    std::vector<Piece> pieces;
  };
  thread_local Scratch scratch;
  // A longer word frees its memory afterwards, and waits for its turn.
  constexpr size_t kKeptBytes = 4096;
  static std::mutex turn;
  std::unique_lock guard(turn, std::defer_lock);
  if (word.size() > kKeptBytes) guard.lock();
  find_best(word, scratch.places);
  // Pieces are collected from the end to the start; adjacent unknown pieces become one.
  std::vector<Piece>& pieces = scratch.pieces;
  pieces.clear();
  for (auto end = static_cast<uint32_t>(word.size()); end > 0;) {
    const Place& place = scratch.places[end];
    if (place.id == unknown_ && !pieces.empty() && pieces.back().id == unknown_)
      pieces.back().begin = place.begin;
    else
      pieces.push_back({place.begin, end, place.id});
    end = place.begin;
  }
  const size_t before = ids.size();
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (piece->id == unknown_)
      append_unknown(word.substr(piece->begin, piece->end - piece->begin), ids);
    else
      ids.push_back(piece->id);
  }
  cache_.store(word, ids.data() + before, ids.size() - before);
  if (scratch.places.capacity() > kKeptBytes) scratch = Scratch{};
}

int64_t Unigram::host_bytes() const {
  return vocabulary_.host_bytes() + trie_.host_bytes() + WordCache::host_bytes() +
         static_cast<int64_t>(scores_.capacity() * sizeof(double));
}

}  // namespace snug::text
