#include "text/record/mismatched_answers.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"

namespace snug::text {
namespace {

// Cuts the document, and the memory that it takes too.
void cut(Document& document, int64_t most) {
  if (static_cast<int64_t>(document.ids.size()) <= most) return;
  const auto size = static_cast<size_t>(most);
  document = {{document.ids.begin(), document.ids.begin() + size},
              {document.trained.begin(), document.trained.begin() + size}};
}

}  // namespace

MismatchedAnswers::MismatchedAnswers(int64_t batch, int64_t max_length, Take take)
    : batch_(batch), max_length_(max_length), take_(std::move(take)) {
  SNUG_CHECK(batch == 0 || batch >= 2, "answers are exchanged among {}", batch);
}

void MismatchedAnswers::add(std::vector<LabelledAnswer> answers) {
  const bool is_pair = answers.size() > 1;
  for (LabelledAnswer& answer : answers) {
    SNUG_CHECK(answer.prompt_tokens < max_length_, "max_length leaves no answer");
    cut(answer.document, answer.prompt_tokens + max_length_);
    if (is_pair && !answer.is_desirable) {
      if (!rejected_) rejected_.emplace();
      rejected_->add(answer.document.ids, answer.document.trained);
    } else {
      add_example(std::move(answer));
    }
  }
  if (is_pair && ++pairs_ == kPairsAtOnce) add_rejected();
}

// An answer begins at the first token that is learned.
void MismatchedAnswers::add_rejected() {
  pairs_ = 0;
  if (!rejected_) return;
  rejected_->finish();
  Ids words;
  for (int64_t i = 0; i < rejected_->size(); ++i) {
    words.resize(static_cast<size_t>(rejected_->length(i)));
    rejected_->read(i, words);
    LabelledAnswer example;
    for (const int32_t word : words) {
      example.document.ids.push_back(DocumentStore::id_of(word));
      example.document.trained.push_back(DocumentStore::is_target(word) ? 1 : 0);
    }
    example.prompt_tokens =
        std::ranges::find(example.document.trained, uint8_t{1}) - example.document.trained.begin();
    add_example(std::move(example));
  }
  rejected_.reset();
}

void MismatchedAnswers::add_example(LabelledAnswer example) {
  Ids answer(example.document.ids.begin() + example.prompt_tokens, example.document.ids.end());
  if (held_ == 0) {
    first_ = std::move(example);
    before_ = std::exchange(last_, std::move(answer));
  } else {
    give_out(example, last_);
    last_ = std::move(answer);
  }
  if (++held_ == batch_) end_batch();
}

void MismatchedAnswers::end_batch() {
  if (held_ == 0) return;
  const Ids& answer = held_ == 1 ? before_ : last_;
  if (answer.empty())
    base::throw_user_error(
        "the data holds one example, whose prompt has no other answer to be compared with; "
        "objective=kto needs two or more");
  give_out(*first_, answer);
  first_.reset();
  held_ = 0;
}

void MismatchedAnswers::finish() {
  add_rejected();
  end_batch();
}

void MismatchedAnswers::give_out(const LabelledAnswer& example, const Ids& answer) const {
  Document mismatched;
  const auto prompt = std::span(example.document.ids).first(example.prompt_tokens);
  mismatched.ids.assign(prompt.begin(), prompt.end());
  mismatched.ids.insert(mismatched.ids.end(), answer.begin(), answer.end());
  mismatched.ids.resize(std::min(mismatched.ids.size(), static_cast<size_t>(max_length_)));
  mismatched.trained.assign(mismatched.ids.size(), 1);
  std::fill_n(mismatched.trained.begin(), prompt.size(), uint8_t{0});
  take_(example, mismatched);
}

}  // namespace snug::text
