#include "generate/evaluation/text_perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "base/console.h"
#include "base/seconds_since.h"
#include "engine/questions/evaluated_records.h"
#include "formats/data/data_files.h"
#include "generate/evaluated_data.h"
#include "text/record/record_form.h"
#include "text/record/record_reader.h"

namespace snug::generate {
namespace {

using Reader = text::RecordReader;

// Texts with an empty line between them, and how many they are.
struct JoinedTexts {
  std::string text;
  int64_t count = 0;

  // `goes_on`: the piece belongs to the text before.
  void add(const std::string& more, bool goes_on) {
    if (!goes_on && count++ > 0) text += "\n\n";
    text += more;
  }
};

// Texts of one entry of the data, up to its limit.
class TextReader {
 public:
  TextReader(const formats::Recipe& recipe, const EvaluatedData& data, JoinedTexts& texts)
      : recipe_(recipe), data_(data), texts_(texts), last_(texts.count + data.files().limit) {}

  void run() {
    for (const std::string& file : data_.files().files) {
      if (is_full()) return;
      Reader reader(file);
      if (reader.format() == Reader::Format::plain_text)
        read_plain(reader, file);
      else
        read_records(reader, file);
    }
  }

 private:
  bool is_full() const { return data_.files().limit > 0 && texts_.count >= last_; }

  void read_plain(Reader& reader, const std::string& file) {
    if (data_.files().limit > 0)
      recipe_.fail("data", fmt::format("has a limit, and {} is plain text, which has no records to "
                                       "count; leave the limit out, or give records with text",
                                       file));
    for (text::RawRecord raw; reader.next(raw);) texts_.add(raw.text, raw.continues);
  }

  void read_records(Reader& reader, const std::string& file) {
    engine::EvaluatedRecords records;
    const int64_t before = texts_.count;
    for (text::RawRecord raw; !is_full() && reader.next(raw); ++records.count) {
      try {
        const text::Record record = text::parse_record(raw, file, data_.rules());
        records.unused.add(record.unused);
        records.ignored.add(record.ignored);
        texts_.add(text_of(record, file), false);
      } catch (const text::RecordError& error) {
        records.bad.add(error);
      }
    }
    records.check(recipe_, file, texts_.count > before, "nothing is left to score");
    records.tell(file, data_.rules());
  }

  static const std::string& text_of(const text::Record& record, const std::string& file) {
    if (record.form == text::RecordForm::text) return record.answer;
    throw text::RecordError(
        record.number,
        fmt::format("it is of the form {}, and perplexity is that of texts; expected a field text, "
                    "or take stride out to compare answers",
                    text::name_of(record.form)),
        file, record.line);
  }

  const formats::Recipe& recipe_;
  const EvaluatedData& data_;
  JoinedTexts& texts_;
  int64_t last_;  // how many there are in all when the limit is reached
};

JoinedTexts joined_texts(const formats::Recipe& recipe) {
  refuse_weights(recipe, "each text is scored");
  JoinedTexts texts;
  for (const formats::DataEntry& entry : recipe.data) {
    const EvaluatedData data(recipe, entry, false);
    TextReader(recipe, data, texts).run();
  }
  return texts;
}

int64_t stride_for(const formats::Recipe& recipe, int64_t window) {
  if (recipe.stride <= window) return recipe.stride;
  if (recipe.is_given("stride"))
    recipe.fail("stride",
                fmt::format("is {}, and a window has {} tokens, so that some would not be "
                            "scored; use stride={}",
                            recipe.stride, window, window));
  return window;
}

}  // namespace

bool asks_for_perplexity(const formats::Recipe& recipe) {
  if (recipe.is_given("stride")) return true;
  for (const formats::DataEntry& entry : recipe.data) {
    const formats::DataFiles found =
        formats::data_files(recipe, "data", entry, formats::DataUse::evaluation);
    for (const std::string& file : found.files)
      if (Reader(file).format() != Reader::Format::plain_text) return false;
  }
  return true;
}

Figure strided_figure(std::span<const ScoredIds> windows, std::span<const Likelihood> scored) {
  std::vector<double> all;
  double loss = 0;
  double weight = 0;
  for (size_t i = 0; i < windows.size(); ++i) {
    const bool scores_all = std::ssize(windows[i].ids) == windows[i].scored + 1;
    const auto counted = static_cast<double>(windows[i].scored - (scores_all ? 0 : 1));
    loss -= scored[i].sum() / static_cast<double>(windows[i].scored) * counted;
    weight += counted;
    all.insert(all.end(), scored[i].log_probabilities.begin(), scored[i].log_probabilities.end());
  }
  Figure figure = perplexity_figure(all);
  figure.metric = "perplexity";
  figure.value = std::exp(loss / weight);
  return figure;
}

TextPerplexity text_perplexity(const ModelToAsk& model) {
  if (model.source.config.has_encoder())
    model.recipe.fail("data",
                      "is text, and an encoder-decoder has no perplexity of a text alone; "
                      "give prompts with their answers");
  const JoinedTexts texts = joined_texts(model.recipe);
  const std::vector<int32_t> ids = model.tokenizer.encode(texts.text);
  if (ids.size() < 2)
    model.recipe.fail("data",
                      fmt::format("has {} tokens of text, and each is scored by what stands "
                                  "before it; give more text",
                                  ids.size()));
  TextPerplexity result{.texts = texts.count};
  const int64_t positions = model.source.config.max_position;
  result.window =
      model.recipe.max_length > 0 ? std::min(model.recipe.max_length, positions) : positions;
  if (model.recipe.is_given("max_length") && model.recipe.max_length > positions)
    base::say("max_length is {}, but the model has {} positions: windows have {} tokens",
              model.recipe.max_length, positions, positions);
  result.stride = stride_for(model.recipe, result.window);
  const std::vector<ScoredIds> windows = strided_windows(ids, result.window, result.stride);
  engine::Inference inference(model.recipe, model.source,
                              likelihood_shape(windows, model.recipe.batch));
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Likelihood> scored = likelihoods(inference, windows);
  result.run.add(base::seconds_since(begin), inference);
  result.perplexity = strided_figure(windows, scored);
  result.loss = std::log(result.perplexity.value);
  return result;
}

}  // namespace snug::generate
