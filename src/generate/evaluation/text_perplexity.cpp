#include "generate/evaluation/text_perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/console.h"
#include "base/seconds_since.h"
#include "formats/data/data_files.h"
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

void read_texts(const std::string& file, int64_t limit, JoinedTexts& texts) {
  Reader reader(file);
  const int64_t before = texts.count;
  for (text::RawRecord raw; reader.next(raw);) {
    if (reader.format() == Reader::Format::plain_text) {
      texts.add(raw.text, raw.continues);
      continue;
    }
    if (limit > 0 && texts.count - before >= limit) return;
    const text::Record record = text::parse_record(raw, file);
    if (record.form != text::RecordForm::text)
      throw base::UserError(fmt::format("record {} is of the form {}, and perplexity is that of "
                                        "texts; expected a field text, or take stride out to "
                                        "compare answers",
                                        raw.number, text::name_of(record.form)),
                            {file, raw.line, 0});
    texts.add(record.answer, false);
  }
}

JoinedTexts joined_texts(const formats::Recipe& recipe) {
  JoinedTexts texts;
  for (const formats::DataEntry& entry : recipe.data) {
    const formats::DataFiles found =
        formats::data_files(recipe, "data", entry, formats::DataUse::evaluation);
    for (const std::string& note : found.notes) base::say("{}: {}", found.description, note);
    for (const std::string& file : found.files) read_texts(file, found.limit, texts);
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
