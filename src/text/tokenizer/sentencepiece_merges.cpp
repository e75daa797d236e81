#include "text/tokenizer/sentencepiece_merges.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/error.h"

namespace snug::text {
namespace {

using nlohmann::json;
using Pieces = std::vector<SentencePieceModel::Piece>;

// The pieces of which others may consist; counts the bytes that were looked up among them.
class KnownPieces {
 public:
  explicit KnownPieces(const std::string& file) : file_(file) {}

  void add(const std::string& text) {
    texts_.insert(text);
    lengths_.insert(text.size());
  }

  // Whether both parts of a text, divided at `place`, are pieces. Most places of a long text are
  // excluded by the parts' lengths. The number of bytes that are looked up is limited, since a
  // malicious model of long pieces that all consist of each other could exhaust memory with its
  // merges.
  bool hold_parts(std::string_view text, size_t place) {
    if (!lengths_.contains(place) || !lengths_.contains(text.size() - place)) return false;
    looked_up_ += text.size();
    if (looked_up_ > kMostBytes)
      throw base::UserError(
          "its pieces are too long, and made of each other in too many ways; SentencePiece trains "
          "no such model. Is the file whole? Download it again",
          {file_, 0, 0});
    return texts_.contains(std::string(text.substr(0, place))) &&
           texts_.contains(std::string(text.substr(place)));
  }

 private:
  // Five times as much as the model with the most pieces (Gemma's) needs.
  static constexpr size_t kMostBytes = size_t{64} << 20;

  const std::string& file_;
  std::unordered_set<std::string> texts_;
  std::unordered_set<size_t> lengths_;
  size_t looked_up_ = 0;
};

}  // namespace

std::vector<size_t> inner_places(const std::string& text) {
  std::vector<size_t> places;
  for (size_t i = 1; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) places.push_back(i);
  return places;
}

json merges_of_pieces(const Pieces& pieces, bool by_score, const std::string& file) {
  KnownPieces known(file);
  for (const auto& piece : pieces)
    if (!by_score || piece.kind == PieceKind::normal) known.add(piece.text);
  // The negated score (so that the highest comes first), the id, and the two pieces.
  std::vector<std::tuple<float, size_t, std::string, std::string>> ranked;
  for (size_t id = 0; id < pieces.size(); ++id) {
    const std::string& text = pieces[id].text;
    if (by_score && pieces[id].kind != PieceKind::normal) continue;
    for (const size_t place : inner_places(text)) {
      if (known.hold_parts(text, place))
        ranked.emplace_back(by_score ? -pieces[id].score : 0.0F, id, text.substr(0, place),
                            text.substr(place));
    }
  }
  // Pairs for the same piece are in ascending order of their first part's length.
  std::sort(ranked.begin(), ranked.end());
  json merges = json::array();
  for (auto& [score, id, left, right] : ranked)
    merges.push_back({std::move(left), std::move(right)});
  return merges;
}

}  // namespace snug::text
