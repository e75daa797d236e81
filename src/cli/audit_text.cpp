#include "cli/audit_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/shown_text.h"
#include "text/unicode/utf8.h"
#include "train/audit.h"

namespace snug::cli {
namespace {

using text::AuditedSet;
using text::AuditReport;
using text::DecodedPiece;
using text::DocumentSample;

constexpr std::string_view kMargin = "  | ";
constexpr std::string_view kLineEnd = "\u23CE";  // stands before each line break of the text
// Of longer text the middle is left out.
constexpr size_t kShownBytes = 600;
constexpr size_t kShownPieces = 60;

struct Signs {
  std::string trained;
  std::string other;    // after something that was trained
  std::string control;  // an added token that is not trained
};

// Signs that stand in no sample.
Signs plain_signs(const AuditReport& report) {
  constexpr auto kCandidates = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"\u27E6", "\u27E7"}, {"\u27EA", "\u27EB"}, {"<<<", ">>>"}, {"{{{", "}}}"}});
  const auto is_free = [&](const auto& signs) {
    for (const AuditedSet& set : report.sets)
      for (const DocumentSample& sample : set.samples)
        for (const auto* pieces : {&sample.input, &sample.pieces})
          for (const DecodedPiece& piece : *pieces)
            if (piece.text.find(signs.first) != std::string::npos ||
                piece.text.find(signs.second) != std::string::npos)
              return false;
    return true;
  };
  const auto* const free = std::ranges::find_if(kCandidates, is_free);
  const auto& signs = free == kCandidates.end() ? kCandidates.back() : *free;
  return {std::string(signs.first), std::string(signs.second), ""};
}

const Signs kColours{"\033[32m", "\033[0m", "\033[2m"};

std::string with_short_middle(const std::string& text) {
  if (text.size() <= kShownBytes) return text;
  constexpr size_t kEnd = kShownBytes / 3;
  const std::string_view begin = text::first_bytes(text, kShownBytes - kEnd);
  size_t from = text.size() - kEnd;
  while (from < text.size() && text::is_inside_character(text[from])) ++from;
  return fmt::format("{} [... {} bytes ...] {}", begin, from - begin.size(), text.substr(from));
}

// Writes pieces line by line, each with a margin and with its own signs.
class SamplePrinter {
 public:
  SamplePrinter(const Signs& signs, bool colour) : signs_(signs), colour_(colour) {}

  std::string print(const std::vector<DecodedPiece>& pieces) {
    out_ = kMargin;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces.size() > kShownPieces && i == kShownPieces / 2) {
        const size_t left_out = pieces.size() - kShownPieces;
        mark(Mark::none);
        out_ += fmt::format("\n{}[... {} pieces ...]\n{}", kMargin, left_out, kMargin);
        i += left_out;
      }
      add(pieces[i]);
    }
    mark(Mark::none);
    return out_ + "\n";
  }

 private:
  enum class Mark { none, trained, control };

  void add(const DecodedPiece& piece) {
    const Mark own = piece.is_trained ? Mark::trained : piece.is_added ? Mark::control : Mark::none;
    mark(own);
    for (const char c : base::shown_text(with_short_middle(piece.text))) {
      mark(own);
      if (c != '\n') {
        out_ += c;
        continue;
      }
      out_ += kLineEnd;
      mark(Mark::none);
      out_ += fmt::format("\n{}", kMargin);
    }
  }

  void mark(Mark next) {
    if (next == now_) return;
    if (now_ == Mark::trained || (now_ == Mark::control && colour_)) out_ += signs_.other;
    if (next == Mark::trained) out_ += signs_.trained;
    if (next == Mark::control) out_ += signs_.control;
    now_ = next;
  }

  const Signs& signs_;
  bool colour_;
  Mark now_ = Mark::none;
  std::string out_;
};

std::string length_lines(const AuditReport& report, const AuditedSet& set) {
  const text::LengthCounts& lengths = set.loaded.lengths;
  if (lengths.size() == 0) return "";
  std::string text = fmt::format(
      "  lengths     {:.0f} tokens in the mean, half have at most {}, 90 % at most {}, the longest "
      "{}\n",
      lengths.mean(), lengths.holding(0.5), lengths.holding(0.9), set.loaded.longest);
  if (set.loaded.form == "text") return text;
  text += "  max_length  ";
  for (const double share : text::kHeldShares)
    text += fmt::format("{} holds {}, ", share == 1 ? set.loaded.longest : lengths.holding(share),
                        text::percent(share));
  if (report.max_length == 0) return text + "auto cuts none that the model has positions for\n";
  return text + fmt::format("{} cuts {} documents and {} tokens\n", report.max_length,
                            set.loaded.truncated, set.loaded.cut_tokens);
}

std::string bar(int64_t count, int64_t most) {
  constexpr int64_t kWidth = 40;
  const int64_t width = (count * kWidth + most - 1) / std::max<int64_t>(1, most);
  return std::string(static_cast<size_t>(width), '#');
}

std::string histogram(const AuditedSet& set) {
  const auto bins = set.loaded.lengths.bins(12);
  int64_t most = 0;
  for (const auto& bin : bins) most = std::max(most, bin.count);
  std::string text;
  for (const auto& bin : bins)
    text += fmt::format("    {:>6} to {:<6} {:>8}  {}\n", bin.first, bin.last, bin.count,
                        bar(bin.count, most));
  return text;
}

std::string overlap_line(const AuditedSet& set) {
  if (!set.overlap) return "";
  return fmt::format(
      "  overlap     {} of {} records are in the training data too, {} by their prompt\n",
      set.overlap->equal, set.overlap->units, set.overlap->equal_prompts);
}

std::string figures(const AuditReport& report, const AuditedSet& set) {
  std::string text = fmt::format("{}: {}\n  trained     {} of {} tokens ({})\n", set.name,
                                 text::describe(set.loaded, set.path), set.loaded.trained_tokens,
                                 set.loaded.tokens, text::percent(set.trained_share()));
  text += length_lines(report, set) + histogram(set);
  if (const std::string rows = text::rows_text(set); !rows.empty())
    text += fmt::format("  rows        {} ({})\n", rows,
                        set.rows.is_packed ? "packed" : "packing=false");
  text += fmt::format("  repeated    {}\n", text::repeated_text(set));
  if (const std::string near = text::near_text(set); !near.empty())
    text += fmt::format("  nearly so   {}\n", near);
  text += overlap_line(set);
  for (const text::AuditedSource& source : set.sources)
    text += fmt::format("  source      {}: {} documents{}, {} tokens, {} trained\n", source.name,
                        source.range.size(),
                        source.taken == source.range.size()
                            ? ""
                            : fmt::format(" (an epoch takes {})", source.taken),
                        source.tokens, text::percent(source.trained, source.tokens));
  return text;
}

std::string samples(const AuditedSet& set, const Signs& signs, bool colour) {
  std::string text;
  for (const DocumentSample& sample : set.samples) {
    const std::string member = text::member_name(set, sample);
    text += fmt::format("\n{}: document {} of {} ({}{}{}): {} tokens, {} of them trained\n",
                        set.name, sample.document + 1, set.scan.documents, sample.why,
                        member.empty() ? "" : ", ", member, sample.tokens, sample.trained);
    SamplePrinter printer(signs, colour);
    if (!sample.input.empty())
      text +=
          fmt::format("  the encoder reads\n{}  the decoder writes\n", printer.print(sample.input));
    text += printer.print(sample.pieces);
  }
  return text;
}

std::string findings(const AuditReport& report) {
  std::string text;
  for (const AuditedSet& set : report.sets)
    for (const text::Finding& finding : set.findings)
      text += fmt::format("\n{} ({}): {}.\n    {}.\n", finding.is_warning ? "WARNING" : "note",
                          set.name, finding.what, finding.remedy);
  return text.empty() ? "\nNothing looks wrong.\n" : text;
}

}  // namespace

std::string audit_text(const AuditReport& report, bool colour) {
  const Signs signs = colour ? kColours : plain_signs(report);
  std::string text;
  for (const AuditedSet& set : report.sets) text += base::shown_text(figures(report, set));
  text += fmt::format("\nWhat is trained stands {}; {} stands for a line break.\n",
                      colour ? signs.trained + "in this colour" + signs.other
                             : fmt::format("between {} and {}", signs.trained, signs.other),
                      kLineEnd);
  for (const AuditedSet& set : report.sets) text += samples(set, signs, colour);
  return text + base::shown_text(findings(report));
}

}  // namespace snug::cli
