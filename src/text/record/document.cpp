#include "text/record/document.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "text/tokenizer/text_encoder.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

// Text that stands between two ids, with the bytes at which answers begin and end.
struct TextRun {
  std::string text;
  std::vector<size_t> borders;  // ascending; the first is where an answer begins, and so on in turn
  bool answer_is_open = false;

  // Two borders at one place are none: an answer that follows another one goes on.
  void add(const std::string& more, bool is_answer) {
    if (more.empty()) return;
    if (is_answer != answer_is_open) borders.push_back(text.size());
    answer_is_open = is_answer;
    text += more;
  }
};

// The tokens that beginnings of an ordinary text have alone. What is certain of a beginning's
// tokens whatever follows is not made again for a longer one, so that all take the time of one.
class TokensBefore {
 public:
  // The more borders there are, the shorter the piece that is made again at each.
  TokensBefore(const Tokenizer& tokenizer, std::string_view text, bool at_start, size_t borders,
               size_t& made_again)
      : encoder_(TextEncoder::of_ordinary(
            tokenizer, at_start, std::clamp(text.size() / borders, kLeastPiece, kMostPiece))),
        text_(text),
        borders_(borders),
        made_again_(made_again) {}

  // How many of `ids`, those of the whole, the first `bytes` alone have, too; more than last time.
  size_t shared_with(std::span<const int32_t> ids, size_t bytes) {
    while (bytes > given_ && bytes < text_.size() && is_inside_character(text_[bytes])) --bytes;
    encoder_.add(text_.substr(given_, bytes - given_), certain_);
    given_ = bytes;
    made_again_ += encoder_.held();
    own_ += encoder_.held();
    ++done_;
    if (made_again_ > kMostMadeAgain || foreseen() > kMostMadeAgain)
      base::throw_user_error(
          "the answers begin and end too often within a text that the tokenizer cannot divide; "
          "mark fewer answers, or split the conversation");
    std::vector<int32_t> rest;
    TextEncoder(encoder_).finish(rest);
    const auto open = ids.subspan(std::min(certain_.size(), ids.size()));
    const auto differ = std::mismatch(open.begin(), open.end(), rest.begin(), rest.end());
    return static_cast<size_t>(differ.first - ids.begin());
  }

 private:
  static constexpr size_t kLeastPiece = 64;
  static constexpr size_t kMostPiece = 1024;
  // Bytes that are tokenized once more, in all: a few seconds of work.
  static constexpr size_t kMostMadeAgain = size_t{32} << 20;
  // Borders after which those that are left may be told of: as many bytes at each, or more.
  static constexpr size_t kToForesee = 256;

  size_t foreseen() const { return done_ < kToForesee ? 0 : own_ / done_ * borders_; }

  TextEncoder encoder_;
  std::string_view text_;
  size_t borders_;
  size_t done_ = 0;  // of them
  size_t given_ = 0;
  size_t own_ = 0;                // bytes made again, of this text
  size_t& made_again_;            // and in the whole document
  std::vector<int32_t> certain_;  // of the whole's, too
};

class Builder {
 public:
  explicit Builder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // What a post-processor adds leaves the text that follows at the start of the document.
  void add_outside(std::span<const int32_t> ids) {
    for (const int32_t id : ids) add_id(id, false);
    outside_ = document_.ids.size();
  }

  void add_id(int32_t id, bool is_answer) {
    document_.ids.push_back(id);
    document_.trained.push_back(is_answer ? 1 : 0);
  }

  void add_text(const TextRun& run) {
    const bool at_start = document_.ids.size() == outside_;
    for (const TextSpan& span : tokenizer_.split_added_tokens(run.text)) {
      if (span.id >= 0) {
        add_id(span.id, is_answer_at(run, span.begin));
      } else {
        add_ordinary(run, span, at_start && span.begin == 0);
      }
    }
  }

  Document take() { return std::move(document_); }

 private:
  static bool is_answer_at(const TextRun& run, size_t byte) {
    const auto after = std::upper_bound(run.borders.begin(), run.borders.end(), byte);
    return (after - run.borders.begin()) % 2 == 1;
  }

  void add_ordinary(const TextRun& run, const TextSpan& span, bool at_start) {
    const auto text = std::string_view(run.text).substr(span.begin, span.end - span.begin);
    std::vector<int32_t> ids;
    tokenizer_.encode_ordinary(text, at_start, ids);
    size_t done = 0;
    bool is_answer = is_answer_at(run, span.begin);
    auto border = std::upper_bound(run.borders.begin(), run.borders.end(), span.begin);
    const auto last = std::lower_bound(border, run.borders.end(), span.end);
    const auto borders = std::max<size_t>(static_cast<size_t>(last - border), 1);
    TokensBefore before(tokenizer_, text, at_start, borders, made_again_);
    for (; border != last; ++border) {
      const size_t end = std::max(done, before.shared_with(ids, *border - span.begin));
      for (; done < end; ++done) add_id(ids[done], is_answer);
      is_answer = !is_answer;
    }
    for (; done < ids.size(); ++done) add_id(ids[done], is_answer);
  }

  const Tokenizer& tokenizer_;
  Document document_;
  size_t made_again_ = 0;
  size_t outside_ = 0;  // ids that stand before the document's own
};

}  // namespace

Document tokenize_parts(const Tokenizer& tokenizer, std::span<const Part> parts,
                        SpecialTokens special) {
  Builder builder(tokenizer);
  if (special != SpecialTokens::none) builder.add_outside(tokenizer.ids_before());
  TextRun run;
  for (const Part& part : parts) {
    if (part.id < 0) {
      run.add(part.text, part.is_answer);
      continue;
    }
    builder.add_text(run);
    run = {};
    builder.add_id(part.id, part.is_answer);
  }
  builder.add_text(run);
  if (special == SpecialTokens::around) builder.add_outside(tokenizer.ids_after());
  Document document = builder.take();
  tokenizer.require_rows(document.ids);
  return document;
}

}  // namespace snug::text
