#include "text/document.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace snug::text {
namespace {

// Text that stands between two ids, with the bytes at which answers begin and end.
struct TextRun {
  std::string text;
  std::vector<size_t> borders;  // ascending; the first is where an answer begins, and so on in turn
  bool answer_is_open = false;

  void add(const std::string& more, bool is_answer) {
    if (is_answer != answer_is_open) borders.push_back(text.size());
    answer_is_open = is_answer;
    text += more;
  }
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
    for (const size_t border : run.borders) {
      if (border <= span.begin || border >= span.end) continue;
      const size_t end =
          std::max(done, tokens_before(ids, text.substr(0, border - span.begin), at_start));
      for (; done < end; ++done) add_id(ids[done], is_answer);
      is_answer = !is_answer;
    }
    for (; done < ids.size(); ++done) add_id(ids[done], is_answer);
  }

  // How many of `ids` the text `before` alone would have, too.
  size_t tokens_before(const std::vector<int32_t>& ids, std::string_view before,
                       bool at_start) const {
    std::vector<int32_t> alone;
    tokenizer_.encode_ordinary(before, at_start, alone);
    const auto differ = std::mismatch(ids.begin(), ids.end(), alone.begin(), alone.end());
    return static_cast<size_t>(differ.first - ids.begin());
  }

  const Tokenizer& tokenizer_;
  Document document_;
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
