#include "text/audit/audit_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/shown_text.h"
#include "text/record/record_form.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

// Of fewer answers nothing is said of how much they are alike.
constexpr int64_t kFewAnswers = 20;

bool is_at_least(int64_t part, double share, int64_t whole) {
  return part > 0 && static_cast<double>(part) >= share * static_cast<double>(whole);
}

std::string counted(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// A text of the data in one line, not too long.
std::string in_one_line(const std::string& text) {
  constexpr size_t kMost = 60;
  std::string line;
  for (const char c : text) line += c == '\n' ? std::string("\\n") : std::string(1, c);
  const std::string_view shown = first_bytes(line, kMost);
  return fmt::format("\"{}{}\"", shown, shown.size() < line.size() ? "..." : "");
}

class FaultFinder {
 public:
  FaultFinder(const AuditReport& report, const AuditedSet& set, const DocumentStore& documents,
              const Tokenizer* tokenizer)
      : report_(report), set_(set), documents_(documents), tokenizer_(tokenizer) {}

  std::vector<Finding> find() {
    find_untrained();
    find_two_bos();
    find_missing_ends();
    find_unwritten();
    find_split_marks();
    find_learned_prompts();
    find_like_answers();
    find_short_answers();
    find_cut();
    find_long_record();
    find_loose_rows();
    find_repeated();
    find_overlap();
    find_text_signs();
    find_unused();
    std::ranges::stable_sort(
        found_, [](const Finding& a, const Finding& b) { return a.is_warning && !b.is_warning; });
    return std::move(found_);
  }

 private:
  const DatasetAudit& loaded() const { return set_.loaded; }
  bool is_form(RecordForm form) const { return loaded().form == name_of(form); }
  bool is_chat() const { return !loaded().chat_template.empty(); }

  void warn(std::string_view key, std::string what, std::string remedy) {
    found_.push_back({key, true, std::move(what), std::move(remedy)});
  }
  void note(std::string_view key, std::string what, std::string remedy) {
    found_.push_back({key, false, std::move(what), std::move(remedy)});
  }

  std::string token_name(int32_t id) const {
    const auto token = tokenizer_ == nullptr ? std::nullopt : tokenizer_->token_of(id);
    return token ? base::shown_text(*token) : std::to_string(id);
  }

  void find_untrained() {
    constexpr double kLittle = 0.01;
    const ContentScan& scan = set_.scan;
    if (scan.untrained_documents > 0)
      warn("nothing_trained",
           fmt::format("of {} documents no token is learned", scan.untrained_documents),
           "look at their labels or masks: a document without a target takes time and teaches "
           "nothing");
    if (set_.trained_share() < kLittle && scan.untrained_documents < scan.documents)
      warn("little_trained",
           fmt::format("{} of the tokens are learned", percent(set_.trained_share())),
           "look whether the answers are marked in the samples. A field of roles or masks may hide "
           "them; if the prompts are that long, most of the time goes into reading them");
  }

  void find_two_bos() {
    const int64_t count = set_.scan.with_two_bos;
    if (!is_at_least(count, 0.01, set_.scan.documents) || tokenizer_ == nullptr) return;
    const std::string bos = token_name(*tokenizer_->bos_id());
    const std::string what = fmt::format("{} documents ({}) begin with {} twice", count,
                                         percent(count, set_.scan.documents), bos);
    if (is_form(RecordForm::tokens))
      return warn("two_bos", what,
                  "the ids were made of a text that had one already: leave one out");
    warn("two_bos", what,
         fmt::format("the data, or a chat template, writes {} as text and the tokenizer adds one: "
                     "take it out of the text",
                     bos));
  }

  void find_missing_ends() {
    constexpr double kMostMiss = 0.5;
    if (set_.ends.empty()) return;
    const ContentScan& scan = set_.scan;
    // Of a text only the last window has an end, and what was cut has none.
    const int64_t whole = is_form(RecordForm::text) ? std::min(loaded().records, scan.documents)
                                                    : scan.documents - loaded().truncated;
    const int64_t missing = whole - scan.with_end;
    if (whole <= 0 || !is_at_least(missing, kMostMiss, whole)) return;
    const std::string what = fmt::format(
        "{} train a token that ends a text ({}), so that generation would not stop",
        scan.with_end == 0 ? "none of the documents"
                           : fmt::format("only {} of {} documents", scan.with_end, scan.documents),
        token_name(set_.ends.front()));
    if (is_form(RecordForm::tokens))
      return warn("end_never_trained", what,
                  fmt::format("put the id {} at the end of each answer, and let it be learned: "
                              "where it is the pad token too, other tools hide it from the loss",
                              set_.ends.front()));
    warn("end_never_trained", what,
         is_chat() ? "the chat template marks its answers without the token that ends them: put it "
                     "inside {% generation %}, or choose another one by chat_template="
                   : "see whether the data hold it in another form, and give them without it");
  }

  void find_unwritten() {
    const std::string text = loaded().unwritten.text();
    if (text.empty()) return;
    const char* remedy =
        "chat_template=FILE gives a template that writes it; ignore_fields=[NAME] says that a "
        "field is to be left out";
    if (text.find("messages") != std::string::npos)
      warn("not_written", text, remedy);
    else
      note("not_written", text, remedy);
  }

  void find_split_marks() {
    constexpr double kOften = 0.5;
    std::vector<std::string> ends;
    std::vector<std::string> others;
    for (const auto& [mark, count] : set_.signs.marks) {
      if (!is_at_least(count.documents, kOften, set_.signs.looked_at)) continue;
      if (is_at_least(count.ending, kOften, set_.signs.looked_at))
        ends.push_back(mark);
      else
        others.push_back(mark);
    }
    if (!ends.empty())
      warn("mark_is_no_token",
           fmt::format("answers end with {}, for which the tokenizer has no token: it is learned "
                       "letter by letter",
                       fmt::join(ends, ", ")),
           "the chat template and the tokenizer do not belong together: use the model's own "
           "template, or a model that was made for this one");
    if (!others.empty())
      note("mark_is_no_token",
           fmt::format("{} stand{} in the text, for which the tokenizer has no token",
                       fmt::join(others, ", "), others.size() == 1 ? "s" : ""),
           "that is as it should be where the model was trained with such text (Zephyr was); else "
           "the template or the data were made for another model");
  }

  void find_learned_prompts() {
    constexpr double kOften = 0.2;
    const SignCounts::Count& sign = set_.signs.of(TextSign::whole_chat);
    const bool holds_chats = is_at_least(sign.documents, kOften, set_.signs.looked_at);
    if (report_.trains_on_prompt && !is_form(RecordForm::text))
      return note("prompts_are_learned", "prompts are learned too, as train_on_prompt=true says",
                  "leave it out where only the answers are to be learned");
    if (!holds_chats) return;
    warn("prompts_are_learned",
         fmt::format("texts hold turns of a user and an assistant (such as {}), and all of them "
                     "are learned",
                     in_one_line(sign.around)),
         "give the turns as messages, or as prompt and completion, so that only the answers are "
         "learned");
  }

  void find_like_answers() {
    const auto text_of = [&](const FrequentValues::Entry& entry, int64_t most) {
      DocumentReader reader(documents_);
      std::vector<int32_t> ids;
      for (const int32_t word : reader.words(entry.document))
        if (DocumentStore::is_target(word) && std::ssize(ids) < most)
          ids.push_back(DocumentStore::id_of(word));
      return in_one_line(tokenizer_ == nullptr ? fmt::format("{}", fmt::join(ids, " "))
                                               : tokenizer_->decode(ids, false));
    };
    const FrequentValues& answers = set_.scan.whole_answers;
    const auto answer = answers.most();
    if (answers.size() >= kFewAnswers && is_at_least(answer.count, 0.5, answers.size()))
      return warn("answers_are_alike",
                  fmt::format("one answer is {} of all: {}", percent(answer.count, answers.size()),
                              text_of(answer, 64)),
                  "a model can learn to say it always: give others more weight, or fewer of these");
    const FrequentValues& beginnings = set_.scan.beginnings;
    const auto beginning = beginnings.most();
    if (answers.size() >= kFewAnswers && is_at_least(beginning.count, 0.9, answers.size()))
      note("answers_begin_alike",
           fmt::format("{} of the answers begin with {}", percent(beginning.count, answers.size()),
                       text_of(beginning, kBeginningTokens)),
           "if that is no format that you want, take it out of the answers");
  }

  void find_short_answers() {
    constexpr int64_t kShort = 2;  // a token, and one that ends the answer
    constexpr int64_t kUsual = 20;
    const LengthCounts& answers = set_.scan.answers;
    const int64_t few = answers.size() - answers.longer_than(kShort);
    if (!is_at_least(few, 0.2, answers.size()) || answers.holding(0.9) < kUsual) return;
    note("short_answers",
         fmt::format("{} of the answers have one word or none, and others have many",
                     percent(few, answers.size())),
         "look whether they are answers or what was left of them");
  }

  void find_cut() {
    constexpr double kMany = 0.05;
    const int64_t cut = loaded().truncated;
    if (cut == 0) return;
    // Where 99 % fit already, the longest one says what holds all.
    const int64_t most = loaded().lengths.holding(0.99);
    const bool is_enough = most <= report_.max_length;
    const std::string what =
        fmt::format("{} documents ({}) are longer than max_length={} and lose {} tokens", cut,
                    percent(cut, loaded().documents), report_.max_length, loaded().cut_tokens);
    const std::string remedy =
        cut_remedy(is_enough ? loaded().longest : most, is_enough ? "all" : "99 % of the");
    if (is_at_least(cut, kMany, loaded().documents))
      warn("cut", what, remedy);
    else
      note("cut", what, remedy);
  }

  std::string cut_remedy(int64_t holds, const char* share) const {
    std::string remedy = report_.positions > 0 && holds > report_.positions
                             ? fmt::format("the model has {} positions", report_.positions)
                             : fmt::format("max_length={} holds {} records", holds, share);
    const bool has_turns = is_form(RecordForm::messages) || is_form(RecordForm::sharegpt) ||
                           is_form(RecordForm::alpaca) || is_form(RecordForm::prompt_completion);
    if (has_turns) remedy += "; truncation=keep_end keeps the ends of answers";
    return remedy + "; truncation=drop leaves such records out";
  }

  void find_long_record() {
    constexpr int64_t kFar = 4;
    const int64_t usual = loaded().lengths.holding(0.99);
    if (!report_.chooses_length || usual == 0 || loaded().longest < kFar * usual) return;
    warn("one_long_record",
         fmt::format("max_length=auto makes rows of the longest record, which has {} tokens; 99 % "
                     "have at most {}",
                     loaded().longest, usual),
         fmt::format("max_length={} takes less memory, and cuts {}", usual,
                     counted(loaded().lengths.longer_than(usual), "record")));
  }

  void find_loose_rows() {
    constexpr double kLoose = 0.5;
    if (set_.rows.rows < 2 || set_.fill() >= kLoose) return;
    note("rows_are_loose",
         fmt::format("rows are {} full: most of a step is padding", percent(set_.fill())),
         set_.rows.is_packed
             ? fmt::format("max_length={} holds all records", loaded().longest)
             : std::string(
                   "packing=true puts several documents into a row; none attends to another"));
  }

  void find_repeated() {
    constexpr double kMany = 0.05;
    constexpr double kSome = 0.01;
    constexpr double kManyNear = 0.2;
    const int64_t repeated = set_.scan.contents.repeated();
    const int64_t units = set_.scan.units;
    const std::string what = fmt::format("{} of {} records ({}) repeat another one", repeated,
                                         units, percent(repeated, units));
    const char* remedy =
        "take them out if nobody meant to repeat them: what is repeated is learned by heart";
    if (is_at_least(repeated, kMany, units))
      warn("repeated", what, remedy);
    else if (is_at_least(repeated, kSome, units))
      note("repeated", what, remedy);
    if (set_.near && is_at_least(set_.near->near, kManyNear, set_.near->looked_at))
      note("nearly_repeated",
           fmt::format("{} of {} records share {} of their runs of three tokens with another one",
                       set_.near->near, set_.near->looked_at, percent(kNearShare)),
           fmt::format("compare documents {} and {}", set_.near->one + 1, set_.near->other + 1));
  }

  void find_overlap() {
    if (!set_.overlap) return;
    const Overlap& overlap = *set_.overlap;
    if (overlap.equal > 0)
      warn("in_training_too",
           fmt::format("{} of {} records of {} are in the training data too, with their answers",
                       overlap.equal, overlap.units, set_.path),
           "take them out of one of both: the loss of what was learned says nothing of what was "
           "not");
    const int64_t prompts = overlap.equal_prompts - overlap.equal;
    if (is_at_least(prompts, 0.01, overlap.units))
      note("prompts_in_training_too",
           fmt::format("{} more have a prompt that the training data have, with another answer",
                       prompts),
           "see that the answer is not given away");
  }

  // Enough documents to be no accident.
  bool is_seen(TextSign sign, double share) const {
    const int64_t documents = set_.signs.of(sign).documents;
    return (documents >= 3 || is_at_least(documents, 0.1, set_.signs.looked_at)) &&
           is_at_least(documents, share, set_.signs.looked_at);
  }

  std::string seen(TextSign sign, const char* what) const {
    const SignCounts::Count& count = set_.signs.of(sign);
    return fmt::format("{} of the {} documents that were looked at {}: {}", count.documents,
                       set_.signs.looked_at, what, in_one_line(count.around));
  }

  void find_text_signs() {
    constexpr double kSome = 0.01;
    using enum TextSign;
    if (is_seen(mojibake, kSome))
      warn(
          "mojibake", seen(mojibake, "hold text that was decoded wrongly"),
          "the file was UTF-8 and read as Latin-1 somewhere: make it anew, or mend it (ftfy does)");
    if (is_seen(replacement, kSome))
      warn("replacement_characters", seen(replacement, "hold U+FFFD in place of a character"),
           "the text was decoded with another encoding than its own: make the file anew");
    if (is_seen(html, kSome))
      note("html_escapes", seen(html, "hold escapes of HTML"),
           "unescape the text, unless the model is to write HTML");
    if (is_seen(line_breaks, 0.05))
      note("escaped_line_breaks",
           seen(line_breaks, "hold the two characters \\n and no line break"),
           "the text was escaped twice: unescape it, unless it is code");
    if (is_seen(placeholders, 0.02))
      note("placeholders", seen(placeholders, "have an answer with a place to be filled"),
           "put what belongs there into the data, unless they are of code that has such places");
    if (is_seen(glued, 0.5))
      warn("glued_answers", seen(glued, "have an answer right after a letter of the prompt"),
           "a prompt and its completion are put together as they stand: end the prompt with a "
           "space or line break, as fields={prompt: \"{NAME}\\n\", completion: NAME} does");
    if (is_seen(empty_system, kSome))
      note("empty_system", seen(empty_system, "have a system message without a word"),
           "leave the message out: then the template writes what it has for none");
    if (is_seen(two_templates, 0.1))
      warn("template_applied_twice", seen(two_templates, "have the marks of a turn twice in a row"),
           "the data hold text that a chat template wrote: give the bare text, or all of it as the "
           "field text");
  }

  void find_unused() {
    const std::string fields = loaded().unused.list();
    if (fields.empty()) return;
    note("unused_fields", fmt::format("fields that are not used: {}", fields),
         "look whether one says what is to be learned; ignore_fields=[NAME] says that it is not "
         "needed");
  }

  const AuditReport& report_;
  const AuditedSet& set_;
  const DocumentStore& documents_;
  const Tokenizer* tokenizer_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> find_faults(const AuditReport& report, const AuditedSet& set,
                                 const DocumentStore& documents, const Tokenizer* tokenizer) {
  return FaultFinder(report, set, documents, tokenizer).find();
}

}  // namespace snug::text
